/** Which database was tried. */
export interface TriedDatabase {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
}

/** Codes of Node for a host that does not answer, and a name that is not known (yet). */
const networkCodes: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/**
 * States of PostgreSQL that pass: connection failures, too many connections, a start or an end that is under way.
 *
 * @see https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const passingStates = /^(?:08...|53300|57P0[123])$/;

/** What the library says without a code. */
const withoutCode = /timeout expired|Connection terminated/;

/** Does the error say that the database is not there at the moment? */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  if (code === undefined) return withoutCode.test(error.message);
  return networkCodes.has(code) || passingStates.test(code);
}

/** Says what an operator can do about a schema that could not be brought up to date. The error itself is the cause. */
export function explainStartFailure(error: unknown, tried: TriedDatabase): Error {
  const because = error instanceof Error ? messageOf(error) : String(error);
  return new Error(`${advice(error, tried)}: ${because}`, { cause: error });
}

function advice(error: unknown, { databaseUrl, dbNamespace }: TriedDatabase): string {
  const { where, user, database } = describe(databaseUrl);
  if (isAway(error)) return `no PostgreSQL answers ${where}. Is it running, and does DATABASE_URL name it`;
  switch (codeOf(error)) {
    case '28P01':
    case '28000':
      return `PostgreSQL ${where} refuses the user ${user} or the password of DATABASE_URL`;
    case '3D000':
      return `PostgreSQL ${where} has no database ${database}. Create it, or name another one in DATABASE_URL`;
    case '42501':
      return `the user ${user} may not change the schema ${dbNamespace} of database ${database}. Make them its owner, or let another user run tollgate-auth migrate`;
    default:
      return `the schema ${dbNamespace} of database ${database} ${where} could not be brought up to date`;
  }
}

/** Names a database, without the password of its connection string. */
export function describeDatabase({ databaseUrl }: Pick<TriedDatabase, 'databaseUrl'>): string {
  const { where, database } = describe(databaseUrl);
  return `database ${database} ${where}`;
}

/** What a connection string names, without its password. */
function describe(databaseUrl: string): { where: string; user: string; database: string } {
  // One that lists several hosts is none for this parser.
  const url = URL.parse(databaseUrl);
  if (url === null) return { where: 'where DATABASE_URL says', user: '', database: '' };
  const database = decoded(url.pathname.slice(1)) || decoded(url.username);
  return { where: `at ${url.host || 'the local socket'}`, user: decoded(url.username), database };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** An error for several addresses of one host says nothing itself. */
function messageOf(error: Error): string {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message;
  return error.errors.map((part) => (part instanceof Error ? part.message : String(part))).join('; ');
}

function codeOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
