import type { AuthSchemas } from '@tollgate/admin-clients/clients';
import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../../errors.ts';
import type { Visit } from '../../http/visit.ts';
import { badge } from '../../ui/text.ts';

type Issuers = AuthSchemas['TokenIssuerList'];

/** Another issuer whose tokens the gateway accepts, with its state in the replica that answers. */
export type Issuer = Issuers['issuers'][number];

export function readIssuers(visit: Visit): Promise<Issuers> {
  return visit.services.auth((client) => client.GET('/admin/issuers'));
}

/** The issuer that the path names. @throws ServiceError, AppError `page_not_found` */
export async function readIssuer(visit: Visit): Promise<Issuer & Pick<Issuers, 'file'>> {
  const { file, issuers } = await readIssuers(visit);
  const found = issuers.find(({ name }) => name === visit.param('id'));
  if (found === undefined) throw errors.page_not_found();
  return { ...found, ...(file !== undefined && { file }) };
}

export function issuerPath({ name }: Pick<Issuer, 'name'>): string {
  return `/issuers/${name}`;
}

/** The expected `iss`. */
export function issuerText({ issuer, keys }: Issuer): string {
  return issuer ?? keys.issuer ?? 'that of the cluster';
}

export function keyState({ keys }: Issuer): Html {
  if (keys.current) return badge(keys.usable.length === 0 ? 'withdrawn' : 'current', 'neutral');
  if (keys.failed_at === undefined) return badge('loading', 'warn');
  return keys.loaded_at === undefined ? badge('unavailable', 'bad') : badge('not refreshed', 'warn');
}

/** Says where issuers are configured: the console does not change files. */
export function whereToEdit(file: string): Html {
  return html`Issuers are configured in <code>${file}</code> of the auth server (SVC_EXT_AUTHZ_ROUTES_FILE), below <code>issuers</code>. It is reloaded when it changes. The state is that of the replica that has answered.`;
}
