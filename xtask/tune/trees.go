// trees N: builds and counts binary trees of depth N on as many goroutines as there are CPUs.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

type tree struct{ left, right *tree }

func grow(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{grow(depth - 1), grow(depth - 1)}
}

func (t *tree) count() int {
	if t.left == nil {
		return 1
	}
	return 1 + t.left.count() + t.right.count()
}

func main() {
	depth, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var wait sync.WaitGroup
	counts := make([]int, 16)
	for k := range counts {
		wait.Add(1)
		go func(k int) {
			defer wait.Done()
			counts[k] = grow(depth).count()
		}(k)
	}
	wait.Wait()
	total := 0
	for _, count := range counts {
		total += count
	}
	fmt.Println(total)
}
