import type { AuthenticatedAccess } from '../compile/access.ts';
import type { LimitOverride } from './limit-override.ts';

/** The caller of a request, as upstreams and rate limits see it. */
export interface CallerIdentity {
  /** Undefined for a token that identifies no caller, such as the public key of a web page. */
  readonly kind: 'user' | 'api_key' | 'client' | undefined;
  /** Undefined for a client and for a service token, which have no user. */
  readonly userId: string | undefined;
  /** Undefined for a token without a session. */
  readonly sessionId: string | undefined;
  /** The API key, if the caller has sent one, and the limit of all requests with it. */
  readonly key: { readonly id: string; readonly limit: LimitOverride | undefined } | undefined;
  readonly clientId: string | undefined;
  readonly orgId: string | undefined;
  readonly orgRole: string | undefined;
  /** Empty: none. */
  readonly role: string;
  readonly plan: string;
  /** Separated by spaces. */
  readonly scope: string | undefined;
  /** The claim `aud`, which routes may require. */
  readonly audiences: readonly string[];
  readonly aal: AuthenticatedAccess['assurance'];
  readonly isAnonymous: boolean;
  /** Name of the issuer of the token. Undefined for an API key. */
  readonly issuer: string | undefined;
  /** Attributes that the routes file adds, by name. */
  readonly claims: Readonly<Record<string, string>>;
  /** The limit of the user, also of one who owns the key. */
  readonly limit: LimitOverride | undefined;
  /** The limit that the members of the organization share. */
  readonly orgLimit: LimitOverride | undefined;
}

/** The issuer of own tokens. No other issuer may have this name. */
export const ownIssuer = 'tollgate';

/** Identities of callers without attributes of the routes file. */
export const noClaims: CallerIdentity['claims'] = Object.create(null);

interface CallerAttribute {
  /** Key of the metadata and of descriptors. With dashes, and after `x-auth-`, the header. */
  readonly name: string;
  readonly read: (identity: CallerIdentity) => string | boolean | undefined;
  /** Which `claims` of the routes file may set it. `own` are those of Tollgate's own tokens. */
  readonly mappedBy: 'nothing' | 'issuers' | 'own and issuers';
  /** Whether every valid token has it. */
  readonly isAlwaysSet?: true;
  /** Its value for a user of Tollgate, an API key, and a token of another issuer. */
  readonly doc: { readonly own: string; readonly keys: string; readonly issuers: string };
}

/**
 * Attributes of callers. Headers, dynamic metadata, descriptors, mappings and
 * docs/caller-attributes.md derive from this table.
 */
export const callerAttributes = [
  {
    name: 'user_id',
    read: ({ userId }) => userId,
    mappedBy: 'issuers',
    doc: {
      own: 'Id of the user. Absent for clients.',
      keys: 'Id of the owner, if a user.',
      issuers: '`<name of the issuer>|<sub>`; with `prefix: none` only `sub`. Absent for clients.',
    },
  },
  {
    name: 'session_id',
    read: ({ sessionId }) => sessionId,
    mappedBy: 'nothing',
    doc: { own: 'Id of the session. Absent for clients.', keys: '', issuers: '' },
  },
  {
    name: 'key_id',
    read: ({ key }) => key?.id,
    mappedBy: 'nothing',
    doc: { own: '', keys: 'Id of the key.', issuers: '' },
  },
  {
    name: 'role',
    read: ({ role }) => role,
    mappedBy: 'issuers',
    doc: {
      own: 'Current role of the user or client.',
      keys: 'That of the key, never above that of a user who owns it.',
      issuers: 'Only by a mapping.',
    },
  },
  {
    name: 'plan',
    read: ({ plan }) => plan,
    mappedBy: 'own and issuers',
    isAlwaysSet: true,
    doc: {
      own: '`app_metadata.plan`, or the plan of the client; else that of the organization, else the mapped claim, else `SVC_EXT_AUTHZ_DEFAULT_PLAN`.',
      keys: 'That of the key, else that of its owner as for users.',
      issuers: 'By a mapping, else `SVC_EXT_AUTHZ_DEFAULT_PLAN`.',
    },
  },
  {
    name: 'aal',
    read: ({ aal }) => aal,
    mappedBy: 'nothing',
    isAlwaysSet: true,
    doc: { own: 'Assurance level of the session: `aal1` or `aal2`.', keys: '`aal1`', issuers: '`aal1`' },
  },
  {
    name: 'anonymous',
    read: ({ isAnonymous }) => isAnonymous,
    mappedBy: 'nothing',
    isAlwaysSet: true,
    doc: {
      own: 'Whether the user is anonymous; a boolean in metadata.',
      keys: 'Whether the owner is.',
      issuers: '`false`',
    },
  },
  {
    name: 'kind',
    read: ({ kind }) => kind,
    mappedBy: 'nothing',
    doc: {
      own: '`user`; `client` for machine clients and service tokens. Absent for public keys of web pages.',
      keys: '`api_key`',
      issuers: '`user` or `client`, by `kinds`.',
    },
  },
  {
    name: 'client_id',
    read: ({ clientId }) => clientId,
    mappedBy: 'own and issuers',
    doc: {
      own: 'Id of the machine client, or of the OAuth client that has the session. Else only by a mapping.',
      keys: '',
      issuers: '`azp`, else `client_id`; `sub` for a service account of Kubernetes.',
    },
  },
  {
    name: 'org_id',
    read: ({ orgId }) => orgId,
    mappedBy: 'own and issuers',
    doc: {
      own: 'Id of the active organization, or `org_id` of the client. Without `SVC_ORGANIZATIONS_ENABLED`, for users: by a mapping.',
      keys: 'Id of the owner, if an organization.',
      issuers: 'Only by a mapping.',
    },
  },
  {
    name: 'org_role',
    read: ({ orgRole }) => orgRole,
    mappedBy: 'own and issuers',
    doc: {
      own: 'Role in the active organization. Without `SVC_ORGANIZATIONS_ENABLED`: by a mapping.',
      keys: '',
      issuers: 'Only by a mapping.',
    },
  },
  {
    name: 'scope',
    read: ({ scope }) => scope,
    mappedBy: 'own and issuers',
    doc: {
      own: 'Scopes of the client, or of the session of an OAuth client. Else only by a mapping.',
      keys: 'Those of the key, separated by spaces.',
      issuers: '`scope`, else `scp`; separated by spaces.',
    },
  },
  {
    name: 'issuer',
    read: ({ issuer }) => issuer,
    mappedBy: 'nothing',
    doc: { own: `\`${ownIssuer}\``, keys: '', issuers: 'Name of the issuer in the routes file.' },
  },
] as const satisfies readonly CallerAttribute[];

/** Attributes of the table, with the types of all rows. */
const rows: readonly CallerAttribute[] = callerAttributes;

/** Attributes whose `mappedBy` includes the claims of other issuers. */
export type MappedAttribute = Extract<
  (typeof callerAttributes)[number],
  { mappedBy: 'issuers' | 'own and issuers' }
>['name'];

export const callerAttributeNames: readonly string[] = rows.map(({ name }) => name);

/** Attributes that a mapping may set. */
export function mappableAttributes(by: 'own' | 'issuers'): readonly string[] {
  return rows
    .filter(({ mappedBy }) => mappedBy !== 'nothing' && (by === 'issuers' || mappedBy === 'own and issuers'))
    .map(({ name }) => name);
}

/** Attributes that every valid token has. */
export const constantAttributes: ReadonlySet<string> = new Set(
  rows.filter(({ isAlwaysSet }) => isAlwaysSet).map(({ name }) => name),
);

const attributesByName: ReadonlyMap<string, CallerAttribute> = new Map(rows.map((row) => [row.name, row]));

/** An attribute of the table or the routes file. Empty: the caller does not have it. */
export function attributeText(identity: CallerIdentity, name: string): string {
  const attribute = attributesByName.get(name);
  const value = attribute === undefined ? identity.claims[name] : attribute.read(identity);
  return value === undefined ? '' : String(value);
}

export function headerName(attribute: string): string {
  return `x-auth-${attribute.replaceAll('_', '-')}`;
}

/** Header, metadata key and accessor of each attribute. */
export const attributeOutputs = rows.map(({ name, read }) => ({ header: headerName(name), name, read }));
