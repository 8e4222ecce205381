create table numa_hosts (
    id integer generated always as identity primary key,
    name text not null unique
);

create table numa_series (
    id integer generated always as identity primary key,
    host integer not null references numa_hosts,
    metric text not null,
    instance text not null,
    unit text not null,
    kind text not null,
    help text not null,
    unique (host, metric, instance)
);
create index on numa_series (metric);
comment on column numa_series.instance is 'node3, cpu12, package0, ...; empty for the whole machine';

create table numa_values (
    time timestamptz not null,
    bits bigint not null,
    series integer not null,
    ns smallint not null,
    primary key (series, time)
);
comment on column numa_values.bits is 'the 64 bits of the value, which is unsigned unless its kind is rate: the view numa has it as a number';
comment on column numa_values.ns is 'nanoseconds after time';

create table numa_labels (
    host integer not null references numa_hosts,
    time timestamptz not null,
    ns smallint not null,
    text text not null,
    digest text generated always as (md5(text)) stored,
    primary key (host, time, ns, digest)
);

create table numa_recordings (
    host integer not null references numa_hosts,
    digest text not null,
    started timestamptz not null,
    description bytea not null,
    primary key (host, digest)
);
comment on table numa_recordings is 'what numa fetch needs besides values: topology, kernel, help';

create view numa as
select
    v.time,
    h.name as host,
    s.metric,
    s.instance,
    s.kind,
    s.unit,
    case when v.bits >= 0 or s.kind = 'rate' then v.bits::numeric else v.bits + 18446744073709551616 end as value
from numa_values v
join numa_series s on s.id = v.series
join numa_hosts h on h.id = s.host;
