/** What came back from the shop, or from Envoy in its place. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON of the body; undefined when it was none. */
  readonly body: unknown;
}

/** Reads a response to its end, so that the connection is used again. */
export async function readReply(response: Response): Promise<Reply> {
  return { status: response.status, headers: response.headers, body: parsed(await response.text()) };
}

/** In a few words: who the shop thinks asked, and how much of the limit is left; or who refused it and why. */
export function counted({ status, headers, body }: Reply, names: Names): string {
  if (status !== 200) return refusal({ status, headers, body });
  const limit = headers.get('ratelimit-limit');
  const left =
    limit === null ? 'not counted' : `${headers.get('ratelimit-remaining') ?? '?'} of ${limit} left`;
  return `200 ${caller(body, names)}, ${left}`;
}

/** The same without what is left, which depends on how often one has asked while a change was on its way. */
export function limited(reply: Reply, names: Names): string {
  const { status, headers, body } = reply;
  if (status !== 200) return refusal(reply);
  return `200 ${caller(body, names)}, limit ${headers.get('ratelimit-limit') ?? 'none'}`;
}

/** In whose name the shop has read its stock. */
export function stockReader(reply: Reply): string {
  if (reply.status !== 200) return refusal(reply);
  return `200 stock read as ${text(reply.body, 'stock', 'caller', 'role') ?? 'nobody'}`;
}

/** Names of users by their ids. */
export type Names = ReadonlyMap<string, string>;

/** Envoy names the rules in its own header: `3, 3;w=3600;name="free-plan"`, the strictest first. */
function refusal({ status, headers, body }: Reply): string {
  if (headers.has('x-limited-by')) {
    const rule = headers.get('x-ratelimit-limit')?.match(/;name="([^"]*)"/)?.[1];
    return `${status} by ${rule ?? 'a limit without a name'}`;
  }
  return `${status} ${text(body, 'error_code') ?? text(body, 'error') ?? 'without a reason'}`;
}

function caller(body: unknown, names: Names): string {
  const userId = text(body, 'caller', 'userId');
  if (userId === undefined) return 'stranger';
  return `${names.get(userId) ?? userId} (${text(body, 'caller', 'plan') ?? 'no plan'})`;
}

/** The string at the end of a path of keys. */
function text(value: unknown, ...path: readonly string[]): string | undefined {
  const end = path.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined),
    value,
  );
  return typeof end === 'string' ? end : undefined;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
