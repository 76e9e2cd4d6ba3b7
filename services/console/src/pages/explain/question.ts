import { errors } from '../../errors.ts';
import type { Visit } from '../../http/visit.ts';
import { readAccessLog, withoutSecrets } from './access-log.ts';

/** Fields of a question that are in the URL, as the auth server names them. */
const fieldNames = ['method', 'url', 'as', 'policy', 'address', 'aal', 'scope', 'org'] as const;

type Question = Partial<Readonly<Record<(typeof fieldNames)[number], string>>> & {
  readonly method: string;
  readonly url: string;
};

/** The question in the URL of the page; undefined before there is one. */
export function readQuestion(visit: Visit): Question | undefined {
  const entries = fieldNames.flatMap((name) => {
    const value = visit.query(name)?.trim();
    return value === undefined ? [] : [[name, value] as const];
  });
  const { method = 'GET', url, ...more } = Object.fromEntries(entries);
  return url === undefined ? undefined : { ...more, method, url };
}

/**
 * The path of the answer. A credential does not get there: its caller does, so that the link can be
 * shared.
 */
export async function ask(visit: Visit, form: URLSearchParams): Promise<string> {
  const read = (name: string) => form.get(name)?.trim() ?? '';
  const line = read('line');
  const logged = line === '' ? undefined : readAccessLog(line);
  if (line !== '' && logged === undefined)
    throw errors.invalid_value({
      message:
        'The line is not of an access log of Envoy: its default format, or JSON with method, path and authority.',
    });
  const { method = read('method') || 'GET', url = read('url') } = logged ?? {};
  if (!/^https?:\/\/[^/]/i.test(url) || !URL.canParse(url))
    throw errors.invalid_value({
      message: 'The URL must be complete, such as https://api.example.com/orders.',
    });
  const shared = { method, url: withoutSecrets(url), policy: read('policy'), address: read('address') };
  const credential = read('credential');
  const caller =
    credential === '' ? { as: read('as') } : await findCaller(visit, { method, url: shared.url, credential });
  const query = new URLSearchParams(
    Object.entries({ ...shared, ...caller }).filter(([, value]) => value !== ''),
  );
  if (logged?.status !== undefined) visit.notify(`Envoy logged the status ${logged.status}.`);
  return `/explain?${query}`;
}

/** The caller that a credential stands for. */
async function findCaller(
  visit: Visit,
  question: { readonly method: string; readonly url: string; readonly credential: string },
): Promise<Readonly<Record<string, string>>> {
  if (!visit.can('explain/credential')) throw errors.missing_scope();
  const { caller = {} } = await visit.services.auth((client) =>
    client.POST('/admin/policies/explain', { body: question }),
  );
  const text = (name: string) => (typeof caller[name] === 'string' ? caller[name] : '');
  if (text('problem') !== '')
    throw errors.invalid_value({
      message: `The credential is not accepted: ${text('message')} (${text('problem')})`,
    });
  const kinds = { key: text('key_id'), user: text('user_id'), client: text('client_id') };
  const [kind, id] = Object.entries(kinds).find(([, value]) => value !== '') ?? [];
  const as = kind === undefined ? '' : `${kind}:${id}`;
  return { as, aal: text('aal'), scope: text('scope'), org: text('org_id') };
}
