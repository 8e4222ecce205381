"""Dictionaries, lists and JSON: what scripts do with memory."""

import json

records = [
    {"id": i, "name": f"record {i}", "tags": [f"tag{(i * k) % 97}" for k in range(6)], "size": i * 1.5}
    for i in range(12000)
]
for turn in range(3):
    text = json.dumps(records)
    records = json.loads(text)
    by_tag = {}
    for record in records:
        for tag in record["tags"]:
            by_tag.setdefault(tag, []).append(record["name"] + str(turn))
    lines = sorted(",".join(names) for names in by_tag.values())
    words = "".join(lines).replace("record", "r").split(",")
    records = [dict(record, words=words[i : i + 3]) for i, record in enumerate(records)]
assert len(records) == 12000
