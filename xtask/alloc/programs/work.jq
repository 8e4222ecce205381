group_by(.parts.left.size) | map({
    size: .[0].parts.left.size,
    count: length,
    price: (map(.price) | add),
    tags: (map(.tags[]) | unique),
    texts: (map(.parts.right.text | length) | add),
    again: (map(tojson) | map(fromjson) | map(.id) | max)
})
