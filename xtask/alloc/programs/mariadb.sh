#!/bin/sh
# Lets a database server do what mariadb.sql says, in a new folder. Usage: mariadb.sh FOLDER COMMAND...
data=$1
shift
rm -rf "$data"
mkdir -p "$data"
"$@" <mariadb.sql 2>"$data/errors" || { cat "$data/errors" >&2; exit 1; }
grep -q '^1009	' "$data/work/result" || { echo "mariadb.sql has no result" >&2; exit 1; }
rm -rf "$data"
