#include "runtime/train/tasks/tool_pattern.hpp"

#include <array>

namespace runtime {

namespace {

constexpr std::array<ToolPattern, 26> kPatterns{{
    {"[get_weather|weather|weather_lookup|current_weather|getWeather|fetch_weather]",
     "[Current weather of a city|Get the weather for a city|Tells the weather]", "city:city",
     "[What is the weather in {city}?|How is the weather in {city} today?|Is it raining in {city}?|"
     "Weather in {city}, please.|What's it like outside in {city}?|Tell me the weather in {city}.]",
     "temperature:integer -5 35;sky:choice sunny,cloudy,rainy,foggy",
     "[In {city} it is {sky} at {temperature} degrees.|It is {sky} in {city}, {temperature} "
     "degrees.|The weather in {city}: {sky}, {temperature} degrees.]"},
    {"[get_forecast|forecast|weather_forecast|daily_forecast]",
     "[Weather forecast for some days|Forecast for a place]", "city:city;days:integer 1 14",
     "[What will the weather be in {city} in the next {days} days?|Give me a {days} day forecast "
     "for "
     "{city}.|Forecast for {city}, {days} days.]",
     "sky:choice sunny,cloudy,rainy,windy;high:integer 0 35",
     "[The next {days} days in {city} will be {sky} with up to {high} degrees.|{city} will be "
     "{sky}, "
     "up to {high} degrees.]"},
    {"[send_email|email|mail_send|sendMail|compose_email]",
     "[Send an email|Writes and sends an email message]", "body:sentence;subject:title;to:email",
     "[Send an email to {to} with the subject {subject} that says: {body}|Write to {to}, subject "
     "\"{subject}\": \"{body}\"|Please mail {to}. Subject: {subject}. Text: {body}]",
     "id:code",
     "[The email to {to} was sent.|I sent your email to {to}.|Done: {to} gets the email.]"},
    {"[set_timer|start_timer|timer|create_timer]", "[Start a countdown|Sets a timer in minutes]",
     "minutes:integer 1 120",
     "[Set a timer for {minutes} minutes.|Start a {minutes} minute timer.|Wake me in {minutes} "
     "minutes.|Timer: {minutes} minutes.|Count down {minutes} minutes.]",
     "ends:time",
     "[The timer is set and ends at {ends}.|Your {minutes} minute timer ends at {ends}.]"},
    {"[set_alarm|add_alarm|alarm_create|createAlarm]", "[Set an alarm clock|Adds an alarm]",
     "day:weekday;time:time",
     "[Set an alarm for {time} on {day}.|Wake me at {time} on {day}.|I have to get up at {time} on "
     "{day}.|Alarm on {day} at {time}, please.]",
     "id:code", "[The alarm for {day} at {time} is set.|I will wake you on {day} at {time}.]"},
    {"[add_event|create_event|calendar_add|schedule_meeting|newEvent]",
     "[Add an event to the calendar|Puts a meeting into the calendar]",
     "date:date;time:time;title:title",
     "[Put {title} into my calendar on {date} at {time}.|Add an event: {title}, {date}, {time}.|"
     "Schedule {title} for {date} at {time}.]",
     "id:code",
     "[{title} is in your calendar on {date} at {time}.|I added {title} for {date}, {time}.]"},
    {"[list_events|calendar_list|get_events|show_calendar]",
     "[List the events of a day|Shows the calendar of one day]", "date:date",
     "[What is in my calendar on {date}?|Which events do I have on {date}?|Show my calendar for "
     "{date}.|Do I have meetings on {date}?]",
     "event:title;start:time",
     "[On {date} you have {event} at {start}.|There is {event} at {start}.]"},
    {"[search_web|web_search|search|internet_search|searchWeb]",
     "[Search the web|Finds pages on the internet]", "query:title",
     "[Search the web for {query}.|Look up {query} online.|Find pages about {query}.|What does the "
     "internet say about {query}?|Search for {query}, please.]",
     "page:title;count:integer 2 900",
     "[I found {count} pages; the first is called {page}.|There are {count} results. The first "
     "one: "
     "{page}.]"},
    {"[translate|translate_text|translator|translation]",
     "[Translate text into a language|Translates a text]", "language:language;text:sentence",
     "[Translate \"{text}\" into {language}.|How do you say \"{text}\" in {language}?|Put this "
     "into "
     "{language}: {text}|What is \"{text}\" in {language}?]",
     "translation:name",
     "[In {language}: {translation}|\"{text}\" is \"{translation}\" in "
     "{language}.]"},
    {"[convert_currency|currency_convert|exchange|convertMoney]",
     "[Convert money|Converts an amount between currencies]",
     "amount:integer 1 900;source:currency;target:currency",
     "[How much is {amount} {source} in {target}?|Convert {amount} {source} to {target}.|Change "
     "{amount} {source} into {target}, please.]",
     "result:number 900", "[{amount} {source} are {result} {target}.|You get {result} {target}.]"},
    {"[convert_units|unit_converter|convert|unitConvert]",
     "[Convert units of length|Unit conversion]",
     "source:choice metre,mile,foot,inch;target:choice kilometre,yard,centimetre;value:number 90",
     "[How many {target}s are {value} {source}s?|Convert {value} {source} to {target}.|Turn "
     "{value} "
     "{source} into {target}.]",
     "result:number 99",
     "[{value} {source} are {result} {target}.|The result is {result} {target}.]"},
    {"[play_music|play_song|music_play|start_playback]", "[Play a song|Plays music by an artist]",
     "artist:name;shuffle:boolean",
     "[Play music by {artist} with shuffle {shuffle}.|Play {artist}, shuffle: {shuffle}.|I want to "
     "hear {artist}. Set shuffle to {shuffle}.]",
     "song:title", "[Now playing {song} by {artist}.|You hear {song} by {artist}.]"},
    {"[set_light|light_control|lights|switch_light|setLamp]",
     "[Control the light of a room|Sets brightness and colour of a lamp]",
     "brightness:integer 0 100;colour:colour;room:place",
     "[Set the light in the {room} to {colour} at {brightness} percent.|Make the {room} {colour}, "
     "brightness {brightness}.|{colour} light in the {room}, {brightness} percent please.]",
     "state:choice on,dimmed",
     "[The light in the {room} is now {colour} at {brightness} percent.|Done: "
     "{colour} in the {room}.]"},
    {"[set_thermostat|heating|set_temperature|thermostat_set]",
     "[Set the temperature of a room|Controls the heating]", "degrees:number 28;room:place",
     "[Set the {room} to {degrees} degrees.|Heat the {room} to {degrees} degrees.|I want {degrees} "
     "degrees in the {room}.|Make it {degrees} degrees in the {room}.]",
     "now:number 25",
     "[The {room} has {now} degrees and goes to {degrees}.|Set: {degrees} degrees in "
     "the {room}, now {now}.]"},
    {"[create_note|add_note|note_save|saveNote|write_note]", "[Save a note|Writes down a text]",
     "text:sentence;title:title",
     "[Write a note called {title}: {text}|Save a note \"{title}\" with the text \"{text}\".|Note "
     "down under {title}: {text}]",
     "id:code", "[The note {title} is saved.|I saved your note as {id}.]"},
    {"[add_reminder|remind_me|create_reminder|reminder]", "[Create a reminder|Reminds the user]",
     "text:title;time:time",
     "[Remind me of {text} at {time}.|At {time}, remind me of {text}.|Set a reminder for {time}: "
     "{text}|Don't let me forget {text} at {time}.]",
     "id:code", "[I will remind you of {text} at {time}.|The reminder for {time} is set.]"},
    {"[add_to_list|shopping_add|shopping_list|addItems]",
     "[Add items to the shopping list|Puts food on the list]", "items:strings food",
     "[Add {items} to my shopping list.|I need to buy {items}.|Put {items} on the list.|We are out "
     "of "
     "{items}.]",
     "count:integer 2 30",
     "[I added {items}. The list has {count} items.|Your list now has {count} "
     "items.]"},
    {"[get_route|directions|find_route|navigate|routePlanner]",
     "[Find the way between two cities|Plans a route]",
     "destination:city;mode:choice car,train,bike;origin:city",
     "[How do I get from {origin} to {destination} by {mode}?|Route from {origin} to {destination} "
     "by "
     "{mode}.|Plan a trip by {mode} from {origin} to {destination}.]",
     "hours:integer 1 20;kilometres:integer 20 2000",
     "[It is {kilometres} kilometres and takes {hours} hours by {mode}.|By {mode} you need {hours} "
     "hours for {kilometres} kilometres.]"},
    {"[book_table|reserve_table|restaurant_booking|bookRestaurant]",
     "[Book a table in a restaurant|Reserves a table]",
     "people:integer 1 12;restaurant:name;time:time",
     "[Book a table for {people} at {restaurant} at {time}.|Reserve {restaurant} for {people} "
     "people, "
     "{time}.|We are {people} and want to eat at {restaurant} at {time}.]",
     "number:code",
     "[Your table for {people} at {restaurant} is booked; the number is {number}.|Booked "
     "for {time}: {number}.]"},
    {"[search_flights|find_flights|flight_search|flights]", "[Find flights|Searches for flights]",
     "date:date;destination:city;origin:city",
     "[Find a flight from {origin} to {destination} on {date}.|I want to fly from {origin} to "
     "{destination} on {date}.|Flights {origin} to {destination}, {date}?]",
     "flight:code;price:integer 40 900",
     "[Flight {flight} on {date} costs {price} euros.|There is {flight} for {price} euros.]"},
    {"[read_file|file_read|open_file|cat_file|readFile]", "[Read a file|Returns a file's content]",
     "path:path",
     "[Read the file {path}.|What is in {path}?|Show me {path}.|Open {path} and tell me what it "
     "says.|What does the file {path} contain?]",
     "content:sentence", "[The file says: {content}|{path} contains: {content}]"},
    {"[write_file|file_write|save_file|writeFile]", "[Write a file|Writes text into a file]",
     "append:boolean;content:sentence;path:path",
     "[Write \"{content}\" to {path}, append {append}.|Save the text {content} in {path} with "
     "append "
     "set to {append}.|Put \"{content}\" into the file {path} (append: {append}).]",
     "bytes:integer 10 90",
     "[I wrote {bytes} bytes to {path}.|{path} now holds the text, {bytes} "
     "bytes.]"},
    {"[get_stock_price|stock_price|quote|share_price]", "[Price of a share|Current stock price]",
     "company:name",
     "[What is the share price of {company}?|How much is a {company} share?|Stock price of "
     "{company}, "
     "please.|How are {company} shares doing?]",
     "price:number 500", "[A share of {company} costs {price}.|{company} stands at {price}.]"},
    {"[calculate_sum|add_numbers|sum|sumNumbers]", "[Add numbers|Returns the sum of numbers]",
     "numbers:integers",
     "[Add {numbers} with the tool.|Use the tool to sum {numbers}.|What is the sum of {numbers}? "
     "Use "
     "a tool.|Calculate the sum of {numbers}.]",
     "sum:integer 10 400", "[The sum is {sum}.|{numbers} add up to {sum}.]"},
    {"[get_user|find_user|user_lookup|lookup_person]", "[Find a user|Looks up a person by name]",
     "name:person",
     "[Which email does the user {name} have?|Look up the user {name}.|Find {name} in the user "
     "list.|Who is the user {name}?]",
     "email:email;age:integer 18 90",
     "[{name} has the email {email}.|{name} is {age} years old; the "
     "email is {email}.]"},
    {"[order_item|place_order|buy|shop_order|createOrder]",
     "[Order a thing|Orders items in a shop]", "colour:colour;item:thing;quantity:integer 1 20",
     "[Order {quantity} of the {colour} {item}.|I want to buy a {item} in {colour}, quantity "
     "{quantity}.|Please order: {item}, {colour}, {quantity} pieces.]",
     "days:integer 1 20;order:code",
     "[I ordered it; order {order} comes in {days} days.|Order {order} will be there in {days} "
     "days.]"},
}};

}  // namespace

std::span<const ToolPattern> tool_patterns() { return kPatterns; }

}  // namespace runtime
