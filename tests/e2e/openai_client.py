#!/usr/bin/env python3
"""The `openai` Python package against a running server: openai_client.py PORT [--api-key KEY]

Exits 0 when every check holds, 1 with the failed one named, 77 (skipped) when the package is missing.
Nothing here depends on what the model says, only on what an answer must look like.
"""
import argparse
import json
import sys
import time
import traceback
import urllib.request

try:
    import openai
except ImportError:
    print("skipped: the openai package is not installed")
    sys.exit(77)

HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather for a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("sluice:" + name) and not line.startswith("#"):
                return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no metric {name}")


def join(chunks):
    """What a client makes of a chat stream with one choice."""
    text, reasoning, calls, reasons, roles = "", "", {}, [], 0
    for chunk in chunks:
        for choice in chunk.choices:
            delta = choice.delta
            roles += delta.role is not None
            text += delta.content or ""
            reasoning += getattr(delta, "reasoning_content", None) or ""
            for call in delta.tool_calls or []:
                known = calls.setdefault(call.index, {"name": "", "arguments": ""})
                known["name"] += call.function.name or ""
                known["arguments"] += call.function.arguments or ""
            if choice.finish_reason:
                reasons.append(choice.finish_reason)
    return text, reasoning, calls, reasons, roles


def refused(kind, call, *, param=None, words=""):
    try:
        call()
    except kind as error:
        assert words in str(error), f"{words!r} is not in {error}"
        assert param is None or error.param == param, f"param is {error.param!r}, not {param!r}"
        return
    raise AssertionError(f"no {kind.__name__}")


class Checks:
    def __init__(self, client, port):
        self.client, self.port = client, port
        self.model = client.models.list().data[0].id

    def chat(self, **more):
        fields = {"model": self.model, "messages": HELLO, "max_tokens": 24, "temperature": 0} | more
        return self.client.chat.completions.create(**fields)

    def complete(self, **more):
        fields = {"model": self.model, "prompt": "Once upon", "max_tokens": 8, "temperature": 0} | more
        return self.client.completions.create(**fields)

    def check_models(self):
        model = self.client.models.list().data[0]
        assert model.object == "model" and model.id
        assert self.client.models.retrieve(model.id).id == model.id
        refused(openai.NotFoundError, lambda: self.client.models.retrieve("no-such-model"))

    def check_chat(self):
        answer = self.chat(model="whatever-you-like")
        assert answer.object == "chat.completion" and answer.model == "whatever-you-like"
        assert answer.id.startswith("chatcmpl-") and abs(answer.created - time.time()) < 60
        choice = answer.choices[0]
        assert choice.message.role == "assistant" and choice.finish_reason in ("stop", "length", "tool_calls")
        usage = answer.usage
        assert usage.prompt_tokens > 0 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
        assert usage.completion_tokens <= 24 and usage.prompt_tokens_details.cached_tokens >= 0
        assert usage.completion_tokens_details.reasoning_tokens <= usage.completion_tokens

    def check_stream_equals_whole(self):
        for fields in ({}, {"temperature": 1, "seed": 7}, {"reasoning_effort": "none"},
                       {"tools": [WEATHER], "tool_choice": "required", "max_tokens": 64}):
            whole = self.chat(**fields)
            chunks = list(self.chat(stream=True, stream_options={"include_usage": True}, **fields))
            text, reasoning, calls, reasons, roles = join(chunks)
            message = whole.choices[0].message
            assert roles == 1 and reasons == [whole.choices[0].finish_reason], (roles, reasons)
            assert text == (message.content or ""), (text, message.content)
            assert reasoning == (getattr(message, "reasoning_content", None) or "")
            assert [calls[i] for i in sorted(calls)] == [
                {"name": c.function.name, "arguments": c.function.arguments} for c in message.tool_calls or []]
            usage = chunks[-1].usage
            assert chunks[-1].choices == []
            for count in ("prompt_tokens", "completion_tokens", "total_tokens"):  # the second is cached
                assert getattr(usage, count) == getattr(whole.usage, count), count
            assert all(chunk.usage is None for chunk in chunks[:-1])
            assert len({chunk.id for chunk in chunks}) == 1

    def check_tools_in_history(self):
        self.chat(tools=[WEATHER, {"type": "web_search"}], messages=HELLO + [
            {"role": "assistant", "content": None, "reasoning_content": "Look it up.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "18C"},
            {"role": "system", "content": "900 tokens left"},
            {"role": "user", "content": [{"type": "text", "text": "And "}, {"type": "text", "text": "now?"}]}])
        refused(openai.BadRequestError, lambda: self.chat(
            tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "nope"}}),
            param="tool_choice.function.name")

    def check_choices(self):
        answer = self.chat(n=2, temperature=1, seed=3)
        assert [choice.index for choice in answer.choices] == [0, 1]
        again = self.chat(n=2, temperature=1, seed=3)
        assert [c.message.model_dump(exclude={"tool_calls"}) for c in answer.choices] == [
            c.message.model_dump(exclude={"tool_calls"}) for c in again.choices]
        seen = {choice.index for chunk in self.chat(n=2, stream=True) for choice in chunk.choices}
        assert seen == {0, 1}

    def check_chat_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=3)
        content = answer.choices[0].logprobs.content
        assert 0 < len(content) <= answer.usage.completion_tokens
        for entry in content:
            assert entry.logprob <= 0 and len(entry.top_logprobs) == 3 and entry.bytes
            assert entry.top_logprobs[0].logprob >= entry.top_logprobs[1].logprob
        streamed = [entry for chunk in self.chat(logprobs=True, top_logprobs=3, stream=True)
                    for choice in chunk.choices if choice.logprobs for entry in choice.logprobs.content]
        assert streamed == content

    def check_completion(self):
        answer = self.complete(prompt=["Once", "Twice"], n=2)
        assert answer.object == "text_completion" and [c.index for c in answer.choices] == [0, 1, 2, 3]
        assert self.complete(max_tokens=openai.NOT_GIVEN).usage.completion_tokens <= 16
        whole = self.complete(echo=True).choices[0].text
        assert whole.startswith("Once upon")
        streamed = "".join(chunk.choices[0].text for chunk in self.complete(echo=True, stream=True))
        assert streamed == whole

    def check_token_ids(self):
        ids = {"return_token_ids": True, "return_tokens_as_token_ids": True}
        answer = self.complete(prompt=[65, 66, 67], logprobs=2, extra_body=ids | {"ignore_eos": True})
        choice = answer.choices[0]
        assert choice.prompt_token_ids == [65, 66, 67] and len(choice.token_ids) == 8
        assert choice.logprobs.tokens == [f"token_id:{i}" for i in choice.token_ids]
        assert len(choice.logprobs.token_logprobs) == 8 and all(2 <= len(top) <= 3 for top in choice.logprobs.top_logprobs)
        # Scoring what was just generated gives the log-probabilities it was generated with.
        scored = self.complete(prompt=[65, 66, 67] + choice.token_ids, max_tokens=0, echo=True, logprobs=2, extra_body=ids)
        scores = scored.choices[0].logprobs
        assert scored.choices[0].token_ids == [] and scored.usage.completion_tokens == 0
        assert scores.token_logprobs[0] is None
        assert scores.token_logprobs[3:] == choice.logprobs.token_logprobs, (scores.token_logprobs, choice.logprobs)

    def check_stop(self):
        text = self.complete(max_tokens=16, extra_body={"ignore_eos": True}).choices[0].text
        letter = next((c for c in text[1:] if c.isascii() and c.isprintable()), None)
        if letter is None:
            return  # nothing one could stop at
        cut = self.complete(max_tokens=16, stop=letter, extra_body={"ignore_eos": True}).choices[0]
        assert cut.text == text[:text.index(letter)] and cut.finish_reason == "stop", (text, cut)
        assert cut.matched_stop == letter

    def check_errors(self):
        bad = openai.BadRequestError
        refused(bad, lambda: self.chat(temperature="hot"), param="temperature", words='got "hot"')
        refused(bad, lambda: self.chat(messages=[]), param="messages")
        refused(bad, lambda: self.chat(messages=[{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:,"}}]}]), words="images are not supported yet")
        refused(bad, lambda: self.chat(reasoning_effort="xhigh"), param="reasoning_effort")
        refused(bad, lambda: self.chat(stream=True, top_logprobs=1), param="top_logprobs")
        refused(bad, lambda: self.complete(prompt=[10 ** 9]), param="prompt[0]")
        refused(bad, lambda: self.complete(prompt="7" * 1200000))  # longer than the context: digits never merge
        refused(openai.NotFoundError, lambda: self.chat(model=self.model + ":nobody"), param="model")
        assert self.complete().choices[0].text is not None  # still serving

    def check_closing_a_stream_aborts(self):
        before = metric(self.port, "num_aborted_requests_total")
        stream = self.complete(prompt="abort me", max_tokens=1000, temperature=1, stream=True,
                               extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        deadline = time.monotonic() + 5
        while metric(self.port, "num_running_reqs") > 0:
            assert time.monotonic() < deadline, "the request still runs 5 s after its client left"
            time.sleep(0.02)
        assert metric(self.port, "num_aborted_requests_total") > before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--api-key", default="unused")
    arguments = parser.parse_args()
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{arguments.port}/v1", api_key=arguments.api_key, max_retries=0, timeout=60)
    checks = Checks(client, arguments.port)
    failed = 0
    for name in [name for name in dir(checks) if name.startswith("check_")]:
        start = time.monotonic()
        try:
            getattr(checks, name)()
            print(f"ok      {name[6:]} ({time.monotonic() - start:.2f} s)", flush=True)
        except Exception:  # one failed check must not hide the others
            failed += 1
            print(f"FAILED  {name[6:]}\n{traceback.format_exc()}", flush=True)
    print(json.dumps({"failed": failed, "openai": openai.__version__}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
