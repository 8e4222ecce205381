# A large document of JSON. Usage: awk -f json.awk
BEGIN {
    printf "["
    for (i = 0; i < 40000; i++) {
        printf "%s{\"id\":%d,\"name\":\"item %x\",\"price\":%d.%02d,\"tags\":[", i ? ",\n" : "", i, i * 7919 % 100003, i % 997, i % 100
        for (j = 0; j < i % 7; j++)
            printf "%s\"tag%d\"", j ? "," : "", (i + j) % 53
        printf "],\"parts\":{\"left\":{\"size\":%d},\"right\":{\"size\":%d,\"text\":\"%0*d\"}}}", i % 31, i % 37, 1 + i % 90, i
    }
    print "]"
}
