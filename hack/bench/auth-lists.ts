import postgres from 'postgres';
import type { Table } from './report.ts';
import { fillUsers } from './users.ts';

const smallCount = 1_000;
const repetitions = 9;

interface List {
  readonly name: string;
  readonly path: string;
}

/** Paths with the filters that the rows of {@link fillUsers} match. */
function lists(count: number): readonly List[] {
  const ago = (part: number) => new Date(Date.now() - part * count * 1000).toISOString();
  const filter = (query: string): List => ({ name: query, path: `/admin/users?total=false&${query}` });
  return [
    { name: 'page 1, with the total', path: '/admin/users?page=1' },
    { name: 'last page, with the total', path: `/admin/users?page=${Math.floor((count * 0.98) / 50)}` },
    { name: 'page 1', path: '/admin/users?total=false' },
    { name: 'by cursor', path: '/admin/users?limit=50' },
    ...['confirmed=false', 'banned=true', 'anonymous=true', 'provider=google'].map(filter),
    ...['role=support', 'plan=gold', 'email=user1@example.com', 'phone=491500000030'].map(filter),
    { ...filter(`created_before=${ago(0.9)}`), name: 'created_before' },
    { ...filter(`last_sign_in_from=${ago(0.02)}`), name: 'last_sign_in_from' },
    { ...filter('prefix=user123'), name: 'prefix of an email' },
    { ...filter('prefix=49150000003'), name: 'prefix of a phone' },
    { ...filter('prefix=Name77'), name: 'prefix of a name' },
    { name: 'audit log, page 1', path: '/admin/audit?page=1' },
  ];
}

export interface ListTarget {
  readonly url: string;
  readonly databaseUrl: string;
  /** The access token of an administrator. */
  readonly token: string;
}

/** Medians of lists with 1,000 and with many users, sessions, audit entries and events. */
export async function benchLists(
  target: ListTarget,
  largeCount: number,
  progress: (what: string) => void,
): Promise<Table> {
  const small = await measureAt(target, smallCount, progress);
  const large = await measureAt(target, largeCount, progress);
  return {
    title: `Lists of ${smallCount} and ${largeCount} users`,
    head: ['request', `${smallCount}: p50 ms`, `${largeCount}: p50 ms`, 'ratio'],
    rows: small.map(({ name, ms }, index) => {
      const largeMs = large[index]?.ms ?? Number.NaN;
      return [name, ms.toFixed(1), largeMs.toFixed(1), (largeMs / ms).toFixed(1)];
    }),
    notes: [
      'as many sessions, audit entries and events; one request at a time; without the total (`total=false`) unless named',
    ],
  };
}

async function measureAt(
  { url, databaseUrl, token }: ListTarget,
  count: number,
  progress: (what: string) => void,
): Promise<{ name: string; ms: number }[]> {
  progress(`filling ${count} users`);
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
  await fillUsers(sql, count).finally(() => sql.end());
  const results: { name: string; ms: number }[] = [];
  for (const { name, path } of lists(count)) {
    progress(`${name}, ${count} users`);
    const times: number[] = [];
    for (let i = 0; i < repetitions; i++) times.push(await timeRequest(`${url}${path}`, token));
    results.push({ name, ms: times.sort((a, b) => a - b)[Math.floor(repetitions / 2)] ?? Number.NaN });
  }
  return results;
}

async function timeRequest(url: string, token: string): Promise<number> {
  const startedMs = performance.now();
  const headers = { authorization: `Bearer ${token}`, 'x-jwt-aud': 'authenticated' };
  const response = await fetch(url, { headers });
  const text = await response.text();
  // Empty lists are quick at any size.
  if (!response.ok || !text.includes('"id"')) throw new Error(`${url} answered ${response.status}: ${text}`);
  return performance.now() - startedMs;
}
