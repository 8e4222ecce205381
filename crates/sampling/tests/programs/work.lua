-- Tables, closures and strings, until it is killed.
while true do
  local t = {}
  for i = 1, 20000 do t[math.random(100000)] = { value = i, name = "n" .. i } end
  local list = {}
  for k, v in pairs(t) do list[#list + 1] = v end
  table.sort(list, function(a, b) return a.name < b.name end)
end
