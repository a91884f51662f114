create table if not exists countersign_rows (
  seq integer primary key autoincrement,
  owner text not null, key text not null, version text not null, list text, tag text,
  size bigint not null, kept_until double precision not null,
  record text not null, state text not null, words text,
  unique (owner, key));

create index if not exists countersign_rows_list on countersign_rows (owner, list, seq) where list is not null;

create index if not exists countersign_rows_tag on countersign_rows (owner, tag, seq) where tag is not null;

create index if not exists countersign_rows_past on countersign_rows (kept_until);

create table if not exists countersign_log (seq integer primary key autoincrement, line text not null);

create table if not exists countersign_meta (name text primary key, value text not null);

create table if not exists countersign_runs (
  name text primary key, writer text not null, state text not null, kept_until double precision not null);

create index if not exists countersign_runs_past on countersign_runs (kept_until);

create table if not exists countersign_events (
  writer text not null, n bigint not null, events text not null, primary key (writer, n));

create table if not exists countersign_listening (
  run text primary key, listener text not null, kept_until double precision not null);

create table if not exists countersign_answers (
  seq integer primary key autoincrement,
  id text not null unique, run text not null, listener text not null, kept_until double precision not null,
  parcel text not null, reply text);

create index if not exists countersign_answers_of on countersign_answers (listener, seq);

create table if not exists countersign_threads (
  thread text not null, item text not null, owner text, stamp text, version bigint not null,
  updated_at double precision, lease_until double precision, place bigint not null, size bigint not null,
  meta text not null, body text not null, primary key (thread, item));

create index if not exists countersign_threads_changed on countersign_threads (thread, version);

create index if not exists countersign_threads_listed on countersign_threads (owner, updated_at, thread) where updated_at is not null;

create index if not exists countersign_threads_held on countersign_threads (lease_until) where lease_until is not null;

insert into countersign_meta (name, value) values ('schema', '1') on conflict (name) do nothing;
