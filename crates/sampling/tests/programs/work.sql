create table t(a integer primary key, b integer, c text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, (i * 7919) % 10007, 'text' || i from n;
create index by_b on t(b);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000000)
select sum(length(x.c)) from n join t x on x.b = n.i % 10007 join t y on y.a = x.b + 1 order by y.c;
