import { type Html, html } from '@tollgate/kit/html';
import { errors } from '../../errors.ts';
import type { Visit } from '../../http/visit.ts';
import { badge } from '../../ui/text.ts';

/** The keys of an issuer in the process of the auth server that answers. */
interface Keys {
  readonly current: boolean;
  readonly loaded_at?: string;
  readonly failed_at?: string;
  readonly problem?: string;
  readonly issuer?: string;
  readonly jwks_uri?: string;
  readonly usable: readonly {
    readonly kid?: string;
    readonly kty: string;
    readonly crv?: string;
    readonly alg?: string;
  }[];
  readonly ignored: readonly { readonly kid: string; readonly reason: string }[];
}

/** Another issuer whose tokens the gateway accepts. */
export interface Issuer {
  readonly name: string;
  /** Absent for that of the cluster. */
  readonly issuer?: string;
  readonly audiences: readonly string[];
  readonly kubernetes: boolean;
  readonly prefix: 'name' | 'none';
  readonly claims: Readonly<Record<string, string>>;
  readonly kinds: { readonly client?: string; readonly user?: string };
  readonly keys: Keys;
  readonly tokens: { readonly accepted: number; readonly rejected: number; readonly unavailable: number };
  readonly last_used_at?: string;
}

interface Issuers {
  /** The file that configures them. */
  readonly file?: string;
  readonly issuers: readonly Issuer[];
}

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
