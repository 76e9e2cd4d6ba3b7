import { serviceKey } from '@tollgate/kit/service-key';
import { type Administrator, consoleUrl } from '../../cli/src/up/parts.ts';
import type { Ports } from './options.ts';
import type { PolicyFolder } from './policies.ts';
import type { Row, Step } from './scenario.ts';
import type { Outcome, Person } from './story.ts';

/** Colours a text, where the output has colours. */
export type Paint = (style: 'bold' | 'dim' | 'green' | 'red', text: string) => string;

/**
 * Lays out the rows of a scenario in columns of one width, so that each can be printed as soon as
 * it is known.
 */
export interface Table {
  readonly head: string;
  title(step: Step): string;
  row(row: Row, outcome: Outcome): string;
}

/** Up to ten seconds. */
const msWidth = 4;

/** A table wide enough for every row of the steps. */
export function createTable(steps: readonly Step[], paint: Paint): Table {
  const rows = steps.flatMap((step) => step.rows);
  const whatWidth = Math.max(...rows.map(({ what }) => what.length));
  const expectWidth = Math.max(...rows.map(({ expect }) => expect.length));
  // The actual result is last: it may be longer than any expected one.
  const line = (mark: string, what: string, ms: string, expected: string, actual: string) =>
    [mark.padEnd(5), what.padEnd(whatWidth), ms.padStart(msWidth), expected.padEnd(expectWidth), actual].join(
      '  ',
    );
  return {
    head: paint('dim', line('', 'what', 'ms', 'expected', 'actual')),
    title: (step) => paint('bold', step.title),
    row({ what, expect }, { asExpected, actual, tookMs }) {
      const ms = String(Math.round(tookMs));
      if (!asExpected) return paint('red', line('WRONG', what, ms, expect, actual));
      return line('ok', what, ms, expect, actual).replace('ok', paint('green', 'ok'));
    },
  };
}

export interface TryItOptions {
  readonly ports: Ports;
  readonly policies: PolicyFolder;
  readonly jwtSecret: string;
  readonly administrator: Administrator;
  /** Variables for the command line. */
  readonly environmentFile: string;
  /** A user who may sign in. */
  readonly person: Pick<Person, 'name' | 'email' | 'password' | 'userId'>;
}

/** Commands to copy after the table, and their purpose. */
export function tryIt(options: TryItOptions): string {
  const { ports, policies, jwtSecret, person } = options;
  const shop = `http://127.0.0.1:${ports.envoy}`;
  const auth = `${shop}/auth`;
  const debug = `http://127.0.0.1:${ports.limiterDebug}`;
  const credentials = `{"email":"${person.email}","password":"${person.password}"}`;
  const question =
    '{"domain":"policy/demo/shop","descriptors":[{"entries":[{"key":"limit","value":"per-user"},{"key":"user_id","value":"me"}]}]}';
  const user = `http://127.0.0.1:${ports.authHttp}/admin/users/${person.userId()}`;
  return `${tryConsole(options)}
All of it stays up. Sign in as ${person.name}, and ask the shop until the plan has no more; without a token, or for /stock:
  TOKEN=$(curl -s '${auth}/token?grant_type=password' -d '${credentials}' | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
  curl -i -H "authorization: Bearer $TOKEN" ${shop}/orders
  curl -i ${shop}/orders
  curl -i -H "authorization: Bearer $TOKEN" ${shop}/stock
Give ${person.name} the plan "pro", as a program of yours would, and ask again with the same token:
  SERVICE_KEY=${serviceKey(jwtSecret)}
  curl -X PUT ${user} -H "authorization: Bearer $SERVICE_KEY" -d '{"app_metadata":{"plan":"pro"}}'
  curl -i -H "authorization: Bearer $TOKEN" ${shop}/orders
Sign out, and ask again:
  curl -i -X POST -H "authorization: Bearer $TOKEN" ${auth}/logout
  curl -i -H "authorization: Bearer $TOKEN" ${shop}/orders
Sign up yourself, in the browser or by the API, and follow the link in the mailbox:
  ${auth}/pages/sign-up
  curl ${auth}/signup -d '{"email":"me@example.com","password":"correct horse"}'
  http://localhost:${ports.authHttp}/dev/mail
Change a limit or an access rule. Saved changes take effect at once; they and any errors are shown here:
  ${policies.path}/shop.yaml
Admin pages: access policies, served rules and their limiters, why a rule matches, counters
  http://127.0.0.1:${ports.xdsAdmin}/
  curl ${debug}/explain -d '${question}'
  curl ${debug}/stats
  curl 'http://127.0.0.1:${ports.envoyAdmin}/stats?filter=^cluster.shop.ext_authz'
  http://127.0.0.1:${ports.envoyAdmin}/

Ctrl-C stops everything.
`;
}

/** The way from the console to the command line. */
function tryConsole({ ports, administrator, environmentFile }: TryItOptions): string {
  return `
The console shows all of it, with a little traffic of several callers. Sign in with this email address and password:
  ${consoleUrl(ports)}/
  ${administrator.email}
  ${administrator.password}
Change a limit there: Limits, a key that is "refused now", "Override the limit for a time". See it on the command line, in another terminal:
  . ${environmentFile}
  tollgate limits overrides
  tollgate top
Change a plan: Users, carol@example.com, "Set plan and limit". See it:
  tollgate users get carol@example.com`;
}
