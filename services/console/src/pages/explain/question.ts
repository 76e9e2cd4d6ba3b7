import { isUuid } from '@tollgate/kit/text';
import { errors } from '../../errors.ts';
import type { Visit } from '../../http/visit.ts';
import { readText } from '../../ui/form.ts';
import { readAccessLog, withoutSecrets } from './access-log.ts';

/** Fields of a question that are in the URL, as the auth server names them. */
const fieldNames = ['method', 'url', 'as', 'policy', 'address', 'aal', 'scope', 'org'] as const;

/** A request to explain. */
export type Question = Partial<Readonly<Record<(typeof fieldNames)[number], string>>> & {
  readonly method: string;
  readonly url: string;
};

/** The question in the URL of the page; undefined before there is one. */
export function readQuestion(visit: Visit): Question | undefined {
  const entries = fieldNames.flatMap((name) => {
    const value = visit.query(name);
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
  const read = (name: string) => readText(form, name);
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
  const address = read('address') || (logged?.address ?? '');
  const shared = { method, url: withoutSecrets(url), policy: read('policy'), address };
  const credential = read('credential');
  const caller =
    credential === ''
      ? { as: read('as') }
      : await findCaller(visit, { method, url: shared.url, address, credential });
  const query = new URLSearchParams(
    Object.entries({ ...shared, ...caller, logged: logged?.response ?? '' }).filter(
      ([, value]) => value !== '',
    ),
  );
  return `/explain?${query}`;
}

/** Fields of a caller with its id, by its kind. */
const callerKinds: Readonly<Record<string, { readonly as: string; readonly id: string }>> = {
  user: { as: 'user', id: 'user_id' },
  client: { as: 'client', id: 'client_id' },
  api_key: { as: 'key', id: 'key_id' },
};

/** The caller that a credential stands for. Empty when the answer is the same for all callers. */
async function findCaller(
  visit: Visit,
  question: Question & { readonly credential: string },
): Promise<Readonly<Record<string, string>>> {
  if (!visit.can('explain/credential')) throw errors.missing_scope();
  const { caller } = await visit.services.auth((client) =>
    client.POST('/admin/policies/explain', { body: question }),
  );
  if (caller === undefined) return {};
  const text = (name: string) => (typeof caller[name] === 'string' ? caller[name] : '');
  if (text('problem') !== '')
    throw errors.invalid_value({
      message: `The credential is not accepted: ${text('message')} (${text('problem')})`,
    });
  const kind = callerKinds[text('kind')];
  const id = kind === undefined ? '' : text(kind.id);
  if (kind === undefined || !isUuid(id))
    throw errors.invalid_value({
      message: `Callers of the issuer ${text('issuer')} are not known by an id, so that no link can name them. Ask with tollgate explain --credential-stdin.`,
    });
  if (kind.as === 'user' && text('client_id') !== '')
    visit.notify('The token is of a client that acts for this user. The answer is for the user alone.');
  return { as: `${kind.as}:${id}`, aal: text('aal'), scope: text('scope'), org: text('org_id') };
}
