#!/usr/bin/env python3
"""Three conversations with a running server through the `openai` package, printed as the README quotes them:
transcripts.py PORT

A chat, a tool call with its result, and a question about a long document. Temperature 0: the same server prints the same.
"""
import json
import sys

import openai

TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather for a city.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Name of the city"},
        "days": {"type": "integer", "description": "Days ahead"}}, "required": ["city"]}}}

# Rooms of a building, each with something in it: only one sentence answers the question.
THINGS = ["a lamp", "a red chair", "two maps", "a clock", "an old radio", "a blue vase", "a desk", "a globe"]


def document(rooms):
    lines = [f"Room {n} is on floor {1 + n % 4}. In it stands {THINGS[n * 5 % len(THINGS)]}." for n in range(1, rooms + 1)]
    lines.insert(rooms // 3, "The key of the archive is kept by Marta Linden.")
    return " ".join(lines)


def show(role, text):
    print(f"{role:>10}: {text}")


def ask(client, messages, **more):
    answer = client.chat.completions.create(model="tiny-k3", messages=messages, temperature=0, max_tokens=200, **more)
    message = answer.choices[0].message
    reasoning = getattr(message, "reasoning_content", None)
    if reasoning:
        show("(thinks)", reasoning)
    if message.content:
        show("assistant", message.content)
    for call in message.tool_calls or []:
        show("calls", f"{call.function.name}({call.function.arguments})")
    return message, answer.usage


def main():
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{sys.argv[1]}/v1", api_key="none")

    print("1. A chat")
    messages = []
    for question in ["Hello! Who are you?", "Sort these words: pear, apple, fig.", "What is 7 plus 5?"]:
        show("user", question)
        messages.append({"role": "user", "content": question})
        message, _ = ask(client, messages)
        messages.append({"role": "assistant", "content": message.content or ""})

    print("\n2. A tool call and its result")
    question = "What is the weather in Lisbon? Look 3 days ahead."
    show("user", question)
    messages = [{"role": "user", "content": question}]
    message, _ = ask(client, messages, tools=[TOOL])
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or []:
        result = json.dumps({"city": "Lisbon", "temperature": 21, "sky": "clear"})
        show("tool", result)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    ask(client, messages, tools=[TOOL])

    print("\n3. A question about a long document")
    text = document(120)
    question = "Who keeps the key of the archive?"
    show("user", f"[{len(text)} characters of text] {question}")
    _, usage = ask(client, [{"role": "user", "content": f"{text}\n\n{question}"}])
    print(f"({usage.prompt_tokens} tokens of prompt)")


if __name__ == "__main__":
    main()
