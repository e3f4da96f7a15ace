-- Questions to the parts of a scan. `ask.py` makes the table `rows` of them; so does
--   create view rows as from read_parquet('OUT/part-*.parquet', union_by_name = true);
-- `target` is the name of a GPU with its settings, such as gfx90a:xnack+. A row of an image has no `status`.

-- gfx1201: Which packages have code for gfx1201?
-- Generic code of its family runs on it, and so does portable code; `offload.match` knows all rules of the runtimes.
select package, count(distinct version) as versions, arg_max(version, release(version)) as newest
from rows
where status is null and split_part(target, ':', 1) in ('gfx1201', 'gfx12-generic', 'amdgcnspirv')
group by package order by package;

-- bytes: How many bytes does each GPU have over the index?
select vendor, split_part(target, ':', 1) as gpu, count(distinct source) as files, count(*) as images,
    sum(stored)::bigint as stored, sum(size)::bigint as size
from rows
where status is null and error is null and kind <> 'host'
group by all order by stored desc, gpu;

-- sm_50: Who still ships machine code or PTX for sm_50, in the newest version?
select package, version, string_agg(distinct format, ', ' order by format) as formats, sum(stored)::bigint as stored
from rows semi join newest using (package, version)
where status is null and split_part(target, ':', 1) = 'sm_50'
group by all order by package;

-- lost: Which packages lost a GPU with their newest version?
select before.package, before.version as before, newest.version as newest, before.gpu
from gpus as before join newest on before.package = newest.package and before.rank = newest.rank - 1
anti join gpus as now on now.package = before.package and now.version = newest.version and now.gpu = before.gpu
order by all;

-- unread: Which files could not be read, and why?
select split_part(source, '/', -1) as file, coalesce(rows.error, said.text) as reason
from rows left join (
    select source, string_agg(error, '; ' order by error) as text from rows where status is null group by source
) as said using (source)
where status = 'failed' order by file;
