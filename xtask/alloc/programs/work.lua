-- Tables of tables, strings that are built and thrown away.
local kept = {}
for turn = 1, 8 do
  local lines = {}
  for i = 1, 40000 do
    local item = { id = i, name = "item " .. i * turn, list = { i, i + 1, i + 2 } }
    kept[i % 5000 + 1] = item
    lines[#lines + 1] = item.name .. ":" .. i
  end
  local text = table.concat(lines, ",")
  local count = 0
  for word in text:gmatch("[^,]+") do
    count = count + #word
  end
  assert(count > 0 and kept[1].name)
end
