/* The protocol between scheduler, cache manager and worker, for recurrent states (pages obey the
 * same rules): overlap of two plans, abort in every phase, retraction, eviction, and moves that fill
 * the hole of a free. Spin visits every interleaving and checks that
 *  - a Restore reads a finished checkpoint, whatever was evicted and handed out meanwhile;
 *  - a forward finds in its working slot what its last forward left there;
 *  - a snapshot is written only into a slot that its own admission holds;
 *  - Bind and Move find the worker's table as the cache manager believes it to be;
 *  - no slot has two owners, and at the end everything was given back or is in the tree;
 *  - every request ends (no invalid end state).
 * Each BREAK_... undoes one rule of the design; check.sh demands that each is then caught. */

#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef SLOTS
#define SLOTS 3
#endif
#define TICKETS (REQUESTS + 1) /* admissions: one each, and request 0 once more */
#define REQUEST(ticket) (ticket == REQUESTS -> 0 : ticket)
#define NONE 255

mtype = { Open, Restored, Donate, Drop, Opened, Refused, Bind, Move, Clear, Restore, Forward, Check };

chan to_cache = [8] of { mtype, byte, byte };           /* ticket, slot */
chan to_scheduler = [12] of { mtype, byte, byte, byte, byte };
chan to_worker = [16] of { mtype, byte, byte, byte, byte };
chan results = [2] of { byte, byte, bool };             /* ticket, step of its admission, finite */
chan head = [12] of { mtype, byte, byte, byte, byte };  /* of the next plan */

/* ---- what lies in a physical slot ---- */
#define JUNK 0
#define ZERO 1
#define CHECKPOINT 2 /* the state at the one position that all prompts share */
#define BAD 3        /* not finite */
#define STATE(ticket, step) (4 + (ticket) * 4 + (step))

/* Sending never blocks: mailboxes are unbounded, so a full channel is a model too small. */
#define post(channel, what, a, b, c, d) \
  assert(nfull(channel)); channel ! what, a, b, c, d
#define ask(what, ticket, slot) assert(nfull(to_cache)); to_cache ! what, ticket, slot

/* ------------------------------- the cache manager ------------------------------- */
#ifdef BREAK_DIRECT_MOVES /* the cache manager is a second sender to the worker */
chan from_cache = [12] of { mtype, byte, byte, byte, byte };
#define COMMANDS from_cache
#define INCOMING from_cache
#else
#define COMMANDS to_scheduler
#define INCOMING to_worker
#endif

inline take(slot) { /* the lowest free virtual slot, at the edge */
  slot = 0;
  do
  :: used[slot] -> slot++
  :: else -> break
  od;
  assert(slot < SLOTS && extent < SLOTS);
  used[slot] = true; place[slot] = extent; at[extent] = slot; extent++;
  post(COMMANDS, Bind, slot, place[slot], 0, 0)
}

inline give(slot) { /* the edge moves into the hole */
  assert(used[slot]);
  used[slot] = false; extent--;
  if
  :: place[slot] != extent ->
     post(COMMANDS, Move, at[extent], extent, place[slot], 0);
     place[at[extent]] = place[slot]; at[place[slot]] = at[extent]
  :: else
  fi
}

inline unlock(ticket) {
  if
  :: locked[ticket] -> locked[ticket] = false; locks--
  :: else
  fi
}

inline evict() {
  if
  :: extent == SLOTS && checkpoint != NONE && locks == 0 -> give(checkpoint); checkpoint = NONE
  :: else
  fi
}

proctype CacheManager() {
  byte ticket, slot;
  byte extent = 0;                   /* slots in use lie at [0, extent) */
  byte place[SLOTS], at[SLOTS];      /* virtual -> physical, and back */
  bool used[SLOTS];                  /* of virtual slots */
  byte checkpoint = NONE, locks = 0; /* the tree: one node */
  byte working[TICKETS], snapshot[TICKETS];
  bool is_open[TICKETS], locked[TICKETS];
  xr to_cache; xs to_scheduler;
  do
  :: ticket < TICKETS -> working[ticket] = NONE; snapshot[ticket] = NONE; ticket++
  :: else -> break
  od;
  ticket = 0;
end:
  do
  :: atomic { to_cache ? Open, ticket, slot ->
       assert(!is_open[ticket]);
       if
       :: checkpoint != NONE -> locks++; locked[ticket] = true
       :: else
       fi;
       evict();
       if /* it is in its own way: it starts from a cleared slot */
       :: extent == SLOTS && locked[ticket] && locks == 1 -> unlock(ticket); evict()
       :: else
       fi;
       if
       :: extent == SLOTS -> unlock(ticket); post(to_scheduler, Refused, ticket, 0, 0, 0)
       :: else ->
          is_open[ticket] = true; snapshot[ticket] = NONE;
          take(slot); working[ticket] = slot;
          if
          :: !locked[ticket] -> evict();
             if
             :: extent < SLOTS -> take(slot); snapshot[ticket] = slot
             :: else
             fi
          :: else
          fi;
          post(to_scheduler, Opened, ticket, working[ticket], snapshot[ticket],
               (locked[ticket] -> checkpoint : NONE))
       fi; slot = 0; ticket = 0 }
  :: atomic { to_cache ? Restored, ticket, slot -> unlock(ticket); slot = 0; ticket = 0 }
  :: atomic { to_cache ? Donate, ticket, slot ->
       assert(is_open[ticket] && (slot == snapshot[ticket] || slot == working[ticket]));
       if
       :: checkpoint == NONE -> checkpoint = slot;
          if
          :: slot == working[ticket] -> working[ticket] = NONE
          :: else -> snapshot[ticket] = NONE
          fi
       :: else /* the tree has it: the slot stays with the admission */
       fi; slot = 0; ticket = 0 }
  :: atomic { to_cache ? Drop, ticket, slot ->
       if
       :: is_open[ticket] ->
          is_open[ticket] = false; unlock(ticket);
          if
          :: working[ticket] != NONE -> give(working[ticket])
          :: else
          fi;
          if
          :: snapshot[ticket] != NONE -> give(snapshot[ticket])
          :: else
          fi;
          working[ticket] = NONE; snapshot[ticket] = NONE
       :: else /* the Open was refused */
       fi; slot = 0; ticket = 0 }
  :: atomic { to_cache ? Check, ticket, slot ->
       assert(locks == 0 && extent == (checkpoint == NONE -> 0 : 1)) }
  od
}

/* ------------------------------- the worker ------------------------------- */
proctype Worker() {
  byte a, b, c, d, table[SLOTS], content[SLOTS];
  bool finite;
  xr to_worker; xs results;
  a = 0;
  do
  :: a < SLOTS -> table[a] = NONE; a++
  :: else -> break
  od;
end:
  do
  :: atomic { INCOMING ? Bind, a, b, c, d ->
       c = 0;
       do /* whoever lay there was given up or moved away */
       :: c < SLOTS -> if :: table[c] == b -> table[c] = NONE :: else fi; c++
       :: else -> break
       od;
       table[a] = b; content[b] = JUNK; a = 0; b = 0; c = 0; d = 0 }
  :: atomic { INCOMING ? Move, a, b, c, d ->
       assert(table[a] == b);
       d = 0;
       do
       :: d < SLOTS -> if :: table[d] == c -> table[d] = NONE :: else fi; d++
       :: else -> break
       od;
       content[c] = content[b]; content[b] = JUNK; table[a] = c; a = 0; b = 0; c = 0; d = 0 }
  :: atomic { to_worker ? Clear, a, b, c, d ->
       assert(table[a] != NONE); content[table[a]] = ZERO; a = 0 }
  :: atomic { to_worker ? Restore, a, b, c, d ->
       assert(table[a] != NONE && table[b] != NONE);
       assert(content[table[a]] == CHECKPOINT);
       content[table[b]] = CHECKPOINT; a = 0; b = 0 }
  :: atomic { to_worker ? Forward, a, b, c, d -> /* ticket, working, snapshot, step */
       assert(table[b] != NONE);
       if
       :: d == 1 -> assert(content[table[b]] == ZERO || content[table[b]] == CHECKPOINT)
       :: else -> assert(content[table[b]] == STATE(a, d - 1))
       fi;
       if
       :: finite = true
       :: d == 1 -> finite = false
       fi;
       content[table[b]] = STATE(a, d);
       if
       :: c != NONE ->
          assert(table[c] != NONE && table[c] != table[b] && content[table[c]] == JUNK);
          content[table[c]] = (finite -> CHECKPOINT : BAD)
       :: else
       fi;
       assert(nfull(results)); results ! a, d, finite;
       a = 0; b = 0; c = 0; d = 0; finite = false }
  od
}

/* ------------------------------- the scheduler ------------------------------- */
#define QUEUED 0
#define OPENING 1
#define RUNNING 2
#define DONE 3
#define STEPS 3 /* rows of a request; the token of the second ends it, so a third is a ghost */

inline forward_head() {
  do
  :: head ? kind, w, x, y, z -> post(to_worker, kind, w, x, y, z)
  :: empty(head) -> break
  od
}

inline unblock() { /* something was given back: who was refused may ask again */
  i = 0;
  do
  :: i < REQUESTS -> blocked[i] = false; i++
  :: else -> break
  od; i = 0
}

inline end_admission(r) {
  if
  :: phase[r] == OPENING || phase[r] == RUNNING -> ask(Drop, ticket_of[r], 0); unblock()
  :: else
  fi;
  work[r] = NONE; snap[r] = NONE; from[r] = NONE; sent[r] = 0
}

inline finish(r) { end_admission(r); phase[r] = DONE; done++ }

/* Any request of which C holds. */
#if REQUESTS == 2
#define PICK(C) if :: C(0) -> r = 0 :: C(1) -> r = 1 fi
#else
#define PICK(C) if :: C(0) -> r = 0 :: C(1) -> r = 1 :: C(2) -> r = 2 fi
#endif
#define MAY_ASK(q) (phase[q] == QUEUED && !blocked[q])
#define MAY_RUN(q) (in_flight < 2 && phase[q] == RUNNING && sent[q] < STEPS)
#define MAY_LEAVE(q) (phase[q] != DONE && !stays[q])
#define MAY_YIELD (phase[0] == RUNNING && ticket_of[0] == 0)

proctype Scheduler() {
  byte phase[REQUESTS], ticket_of[REQUESTS], sent[REQUESTS];
  byte work[REQUESTS], snap[REQUESTS], from[REQUESTS];
  bool blocked[REQUESTS], stays[REQUESTS];
  byte in_flight = 0, done = 0;
  byte r, i, w, x, y, z;
  bool finite;
  mtype kind;
  xs to_cache; xr to_scheduler; xs to_worker; xr results;
  do
  :: r < REQUESTS -> ticket_of[r] = r; work[r] = NONE; snap[r] = NONE; from[r] = NONE;
     if :: stays[r] = true :: skip fi; r++
  :: else -> break
  od;
  r = 0;
  do
  /* the queue asks; any of it may, so every order of admission is visited */
  :: atomic { PICK(MAY_ASK);
       phase[r] = OPENING; ask(Open, ticket_of[r], 0); r = 0 }
  /* answers, and what the cache manager wants done */
  :: atomic { to_scheduler ? kind, w, x, y, z ->
       if
       :: kind == Bind || kind == Move -> post(head, kind, w, x, y, z)
       :: kind == Opened ->
          r = REQUEST(w);
          if
          :: phase[r] == OPENING && ticket_of[r] == w ->
             phase[r] = RUNNING; work[r] = x; snap[r] = y; from[r] = z;
#ifdef BREAK_EARLY_RELEASE
             if :: z != NONE -> ask(Restored, w, 0) :: else fi
#endif
          :: else /* its Drop is already behind the Open */
          fi
       :: kind == Refused ->
          r = REQUEST(w);
          if
          :: phase[r] == OPENING && ticket_of[r] == w -> phase[r] = QUEUED; blocked[r] = true;
             i = 0; x = 0; /* nobody runs: what refused it has been given back meanwhile */
             do
             :: i < REQUESTS -> x = x + (phase[i] == RUNNING || phase[i] == OPENING); i++
             :: else -> break
             od;
             if :: x == 0 -> unblock() :: else fi
          :: else
          fi
       fi; r = 0; i = 0; w = 0; x = 0; y = 0; z = 0; kind = 0 }
  /* a plan: head first, then the row of a running request */
  :: atomic { PICK(MAY_RUN);
       sent[r]++; in_flight++;
#ifndef BREAK_LATE_HEAD
       forward_head();
#endif
       if
       :: sent[r] == 1 && from[r] != NONE ->
          post(to_worker, Restore, from[r], work[r], 0, 0);
#ifndef BREAK_EARLY_RELEASE
          ask(Restored, ticket_of[r], 0);
#endif
          from[r] = NONE
       :: sent[r] == 1 && from[r] == NONE -> post(to_worker, Clear, work[r], 0, 0, 0)
       :: else
       fi;
       post(to_worker, Forward, ticket_of[r], work[r], (sent[r] == 1 -> snap[r] : NONE), sent[r]);
#ifdef BREAK_LATE_HEAD
       forward_head();
#endif
#ifdef BREAK_EARLY_DONATION
       if :: sent[r] == 1 && snap[r] != NONE -> ask(Donate, ticket_of[r], snap[r]) :: else fi;
#endif
       r = 0; w = 0; x = 0; y = 0; z = 0; kind = 0 }
  /* no plan will come to carry the head away */
  :: atomic { in_flight == 0 && nempty(head) -> forward_head();
       w = 0; x = 0; y = 0; z = 0; kind = 0 }
  /* a result */
  :: atomic { results ? w, x, finite ->
       in_flight--; r = REQUEST(w);
       if
       :: phase[r] != RUNNING || ticket_of[r] != w /* a ghost */
       :: else ->
          if
          :: !finite -> finish(r)
          :: else ->
#ifndef BREAK_EARLY_DONATION
#ifdef BREAK_DONATE_WORKING
             if :: x == 1 && snap[r] != NONE -> ask(Donate, w, work[r]) :: else fi;
#else
             if :: x == 1 && snap[r] != NONE -> ask(Donate, w, snap[r]); unblock() :: else fi;
#endif
#endif
             if :: x == 2 -> finish(r) :: else fi
          fi
       fi; r = 0; i = 0; w = 0; x = 0; finite = false }
  /* the client leaves, in whatever phase */
  :: atomic { PICK(MAY_LEAVE);
       finish(r); r = 0; i = 0 }
  /* it has to make room for another */
  :: atomic { MAY_YIELD -> end_admission(0); ticket_of[0] = REQUESTS; phase[0] = QUEUED; i = 0 }
  :: atomic { done == REQUESTS && in_flight == 0 -> ask(Check, 0, 0); break }
  od;
end:
  do
  :: atomic { to_scheduler ? kind, w, x, y, z ->
       if :: kind == Bind || kind == Move -> post(head, kind, w, x, y, z) :: else fi;
       forward_head(); w = 0; x = 0; y = 0; z = 0; kind = 0 }
  :: atomic { nempty(head) -> forward_head(); w = 0; x = 0; y = 0; z = 0; kind = 0 }
  od
}

init { atomic { run CacheManager(); run Worker(); run Scheduler() } }
