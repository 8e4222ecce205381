# A database of pgbench in the folder postgres: two million accounts. Its server refuses to run as root.
set -e
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
programs=/usr/lib/postgresql/15/bin
rm -rf postgres
install -d -o postgres -g postgres postgres
$as $programs/initdb -D postgres -A trust > /dev/null
$as $programs/pg_ctl -D postgres -w -l postgres/log -o "-k /tmp -p 7410 -c listen_addresses=" start > /dev/null
$as $programs/pgbench -h /tmp -p 7410 -i -s 20 -q postgres
$as $programs/pg_ctl -D postgres -w stop > /dev/null
touch postgres/made
