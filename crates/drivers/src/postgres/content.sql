-- What a change by hand would break: columns, and the keys that make writing again change nothing.
select format('%s.%s %s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
              case when a.attnotnull then ' not null' else '' end)
from pg_class c
join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = current_schema()::regnamespace
  and c.relname in ('numa_hosts', 'numa_series', 'numa_values', 'numa_labels', 'numa_recordings')
  and a.attnum > 0 and not a.attisdropped
union all
select format('%s %s', c.relname, pg_get_constraintdef(k.oid))
from pg_class c
join pg_constraint k on k.conrelid = c.oid and k.contype in ('p', 'u')
where c.relnamespace = current_schema()::regnamespace
  and c.relname in ('numa_hosts', 'numa_series', 'numa_values', 'numa_labels', 'numa_recordings')
order by 1
