import postgres, { type Sql } from 'postgres';
import type { Table } from './report.ts';
import { fillUsers } from './users.ts';

const smallCount = 1_000;
const repetitions = 15;

/** A kind of request, which is sent several times, one at a time. */
interface Operation {
  readonly name: string;
  send(): Promise<Response>;
}

export interface ListTarget {
  readonly url: string;
  readonly databaseUrl: string;
  /** The access token of an administrator. */
  readonly token: string;
  /** Creates a user with a session. */
  signUp(): Promise<SignedUp>;
}

interface SignedUp {
  readonly email: string;
  readonly password: string;
  readonly accessToken: string;
  readonly refreshToken: string;
}

/** A row in the middle of a list, as the cursor after it. */
interface Middle {
  readonly users: string;
  readonly audit: string;
  readonly actorId: string;
}

/** Times of requests with 1,000 and with many users, sessions, audit entries and events. */
export async function benchLists(
  target: ListTarget,
  largeCount: number,
  progress: (what: string) => void,
): Promise<Table> {
  const small = await measureAt(target, smallCount, progress);
  const large = await measureAt(target, largeCount, progress);
  return {
    title: `${smallCount} and ${largeCount} users`,
    head: ['request', `${smallCount}: ms`, `${largeCount}: ms`, 'ratio'],
    rows: [...small].map(([name, ms]) => {
      const largeMs = large.get(name) ?? Number.NaN;
      return [name, ms.toFixed(1), largeMs.toFixed(1), (largeMs / ms).toFixed(1)];
    }),
    notes: [
      `the shortest of ${repetitions} requests, one at a time, which other work on the machine distorts least`,
      `lists of few users have fewer rows with ${smallCount} users, 2 of figma and support and 10 of gold, and are full with more`,
      'each user has an identity, a session with a refresh token, an audit entry and an event; lists have 50 rows and no total unless it is named',
    ],
  };
}

/** The shortest time of each request in ms. */
async function measureAt(
  target: ListTarget,
  count: number,
  progress: (what: string) => void,
): Promise<ReadonlyMap<string, number>> {
  progress(`filling ${count} users`);
  const sql = postgres(target.databaseUrl, { max: 1, onnotice: () => undefined });
  try {
    await fillUsers(sql, count);
    const operations = [...lists(target, count, await findMiddle(sql)), ...(await sessionRequests(target))];
    const shortest = new Map<string, number>();
    for (const operation of operations) {
      progress(`${operation.name}, ${count} users`);
      let ms = Number.POSITIVE_INFINITY;
      for (let i = 0; i < repetitions; i++) ms = Math.min(ms, await time(operation));
      shortest.set(operation.name, ms);
    }
    return shortest;
  } finally {
    await sql.end();
  }
}

async function time({ name, send }: Operation): Promise<number> {
  const startedMs = performance.now();
  const response = await send();
  const text = await response.text();
  const ms = performance.now() - startedMs;
  // Empty lists are quick at any size.
  if (!response.ok || !text.includes('"id"')) throw new Error(`${name} answered ${response.status}: ${text}`);
  return ms;
}

async function findMiddle(sql: Sql): Promise<Middle> {
  const cursors = async (table: string) => {
    const [row] = await sql.unsafe(`
      select id, (created_at at time zone 'utc')::text || '+00' as at from auth.${table} order by created_at, id
      offset (select count(*) / 2 from auth.${table}) limit 1`);
    return Buffer.from(`${row?.at} ${row?.id}`).toString('base64url');
  };
  const [entry] = await sql`select payload ->> 'actor_id' as id from auth.audit_log_entries limit 1`;
  return {
    users: await cursors('users'),
    audit: await cursors('audit_log_entries'),
    actorId: String(entry?.id),
  };
}

/** Lists with each of the filters, which rows of {@link fillUsers} match. */
function lists({ url, token }: ListTarget, count: number, middle: Middle): readonly Operation[] {
  const headers = { authorization: `Bearer ${token}`, 'x-jwt-aud': 'authenticated' };
  const list = (name: string, path: string): Operation => ({
    name,
    send: () => fetch(`${url}${path}`, { headers }),
  });
  const users = (name: string, query: string) => list(`users: ${name}`, `/admin/users?${query}`);
  const audit = (name: string, query: string) => list(`audit log: ${name}`, `/admin/audit?${query}`);
  const ago = (part: number) => new Date(Date.now() - part * count * 1000).toISOString();
  const lastPage = Math.floor((count * 0.98) / 50);
  return [
    users('page 1', 'total=false'),
    users('by cursor', 'limit=50'),
    users('by cursor, in the middle', `cursor=${middle.users}`),
    ...['confirmed=false', 'banned=true', 'anonymous=true', 'provider=google', 'provider=figma'].map(
      (query) => users(query, `limit=50&${query}`),
    ),
    ...['role=support', 'plan=gold', 'email=user1@example.com', 'phone=491500000030'].map((query) =>
      users(query, `limit=50&${query}`),
    ),
    users('created_before', `limit=50&created_before=${ago(0.9)}`),
    users('last_sign_in_from', `limit=50&last_sign_in_from=${ago(0.02)}`),
    users('prefix of an email', 'limit=50&prefix=user123'),
    users('prefix of a phone', 'limit=50&prefix=49150000003'),
    users('prefix of a name', 'limit=50&prefix=Name77'),
    users('page 1 with the total', 'page=1'),
    users('provider=google with the total', 'provider=google'),
    users('last page with the total', `page=${lastPage}`),
    users('confirmed=true with the total', 'confirmed=true'),
    users('filter, a part of few emails', 'limit=50&filter=ser123@'),
    audit('page 1', 'total=false'),
    audit('by cursor, in the middle', `cursor=${middle.audit}`),
    ...['action=login', 'action=login_failed', 'kind=administrator', `actor_id=${middle.actorId}`].map(
      (query) => audit(query.replace(middle.actorId, '…'), `limit=50&${query}`),
    ),
    audit('page 1 with the total', 'page=1'),
    audit('action=login with the total', 'action=login'),
    audit('last page with the total', `page=${lastPage}`),
  ];
}

/** Requests of one user among the others. */
async function sessionRequests({ url, signUp }: ListTarget): Promise<readonly Operation[]> {
  const user = await signUp();
  let { refreshToken } = user;
  const token = (grant: string, body: object) =>
    fetch(`${url}/token?grant_type=${grant}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  return [
    {
      name: 'GET /user',
      send: () => fetch(`${url}/user`, { headers: { authorization: `Bearer ${user.accessToken}` } }),
    },
    {
      name: 'POST /token, refresh',
      async send() {
        const response = await token('refresh_token', { refresh_token: refreshToken });
        // The service's own JSON.
        ({ refresh_token: refreshToken } = (await response.clone().json()) as { refresh_token: string });
        return response;
      },
    },
    {
      name: 'POST /token, password',
      send: () => token('password', { email: user.email, password: user.password }),
    },
  ];
}
