# A large C file: structures, loops and calls. Usage: awk -f large.awk
BEGIN {
    print "struct item { int id, part; double price; struct item *next; };"
    for (i = 0; i < 500; i++) {
        printf "static int part%d(struct item *items, int count)\n{\n    int sum = %d;\n", i, i
        print "    for (int i = 0; i < count; i++) {"
        printf "        if (items[i].part == %d && items[i].price > %d.5)\n", i % 17, i
        printf "            sum += items[i].id * %d;\n        else if (items[i].next)\n", i + 3
        printf "            sum ^= items[i].next->id << %d;\n", i % 9
        printf "        switch (sum & 7) { case 0: sum += %d; break; case 3: sum -= i; break; case 5: sum *= 3; break; }\n", i
        print "    }\n    return sum;\n}"
    }
    print "int all(struct item *items, int count)\n{\n    int sum = 0;"
    for (i = 0; i < 500; i++)
        printf "    sum += part%d(items, count);\n", i
    print "    return sum;\n}"
}
