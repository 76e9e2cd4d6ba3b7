import { type ServiceSettings, serviceSettingsSchema } from '@tollgate/kit/start-report';
import { type TSchema, Type } from 'typebox';
import { clientResponses, oauthResponses } from './open-api-oauth-responses.ts';
import {
  anyObject,
  count,
  flag,
  maybe,
  object,
  orNull,
  pageMembers,
  text,
  texts,
  time,
  unixTime,
  uuid,
} from './open-api-types.ts';

const sessionInfo = Type.Object({
  id: uuid,
  current: Type.Boolean({ description: 'Whether it is the session of the request.' }),
  created_at: time,
  refreshed_at: maybe(time),
  used_at: maybe(
    Type.String({
      format: 'date-time',
      description: 'Last request of a browser to an application behind the gateway, to a minute.',
    }),
  ),
  token_expires_at: Type.String({
    format: 'date-time',
    description: 'When the access token of the last refresh expires, unless the session ends before.',
  }),
  not_after: maybe(time),
  aal: text,
  amr: Type.Array(Type.Object({ method: text, timestamp: unixTime })),
  user_agent: text,
  ip: text,
  tag: maybe(text),
  client_id: maybe(Type.String({ format: 'uuid', description: 'The OAuth client that has the session.' })),
  scope: maybe(text),
});

const event = Type.Object({
  id: text,
  type: text,
  webhook_id: maybe(Type.String({ format: 'uuid', description: 'Absent for the endpoint of the settings.' })),
  user_id: maybe(Type.String({ format: 'uuid', description: 'Absent for events without a user.' })),
  data: object,
  created_at: time,
  attempts: count,
  failed_at: maybe(time),
  last_error: text,
});

const verificationKey = Type.Object({ kid: maybe(text), kty: text, crv: maybe(text), alg: maybe(text) });

const tokenIssuerList = Type.Object({
  file: maybe(Type.String({ description: 'The routes file, where issuers are configured.' })),
  issuers: Type.Array(
    Type.Object({
      name: Type.String({ examples: ['login'] }),
      issuer: maybe(Type.String({ description: 'Expected `iss`. Absent: that of the cluster.' })),
      discovery: maybe(text),
      jwks_uri: maybe(text),
      audiences: texts,
      algorithms: texts,
      token_type: Type.Enum(['access', 'at+jwt', 'id']),
      tenants: maybe(texts),
      kubernetes: flag,
      prefix: Type.Enum(['name', 'none']),
      claims: Type.Record(Type.String(), text, { description: 'Paths of claims by attribute.' }),
      kinds: Type.Object({ client: maybe(text), user: maybe(text) }),
      introspection: maybe(Type.Object({ endpoint: text, client_id: text })),
      keys: Type.Object(
        {
          current: Type.Boolean({ description: 'Whether the last attempt to load them succeeded.' }),
          loaded_at: maybe(time),
          failed_at: maybe(time),
          problem: maybe(Type.String({ description: 'Why the last failed attempt has failed.' })),
          issuer: maybe(Type.String({ description: 'As the issuer publishes it.' })),
          jwks_uri: maybe(text),
          usable: Type.Array(verificationKey),
          ignored: Type.Array(
            Type.Object({ kid: text, reason: Type.String({ examples: ['use is not sig'] }) }),
          ),
        },
        { description: 'Keys in the process that answers.' },
      ),
      tokens: Type.Object(
        { accepted: count, rejected: count, unavailable: count },
        { description: 'Tokens verified by the process that answers, without those in its cache.' },
      ),
      last_used_at: maybe(
        Type.String({ format: 'date-time', description: 'When that process last accepted a token.' }),
      ),
    }),
  ),
});

const customProvider = Type.Object({
  id: uuid,
  provider_type: Type.Enum(['oauth2', 'oidc']),
  identifier: text,
  name: text,
  client_id: text,
  acceptable_client_ids: texts,
  scopes: texts,
  pkce_enabled: flag,
  attribute_mapping: object,
  custom_claims_allowlist: texts,
  authorization_params: object,
  enabled: flag,
  email_optional: flag,
  issuer: maybe(text),
  discovery_url: maybe(text),
  skip_nonce_check: flag,
  authorization_url: maybe(text),
  token_url: maybe(text),
  userinfo_url: maybe(text),
  jwks_uri: maybe(text),
  discovery_document: maybe(object),
  created_at: time,
  updated_at: time,
});

const webhook = Type.Object({
  id: uuid,
  name: text,
  url: text,
  event_types: Type.Array(text, { description: 'Empty: all.' }),
  disabled: flag,
  created_at: time,
  updated_at: time,
  last_delivered_at: maybe(time),
  last_failed_at: maybe(time),
  last_error: text,
  previous_secret_until: maybe(time),
  secret: maybe(Type.String({ description: 'Shown once, after it was made.' })),
});

const ownApiKey = {
  id: uuid,
  name: text,
  prefix: text,
  last4: text,
  owner: orNull(Type.Object({ user_id: maybe(uuid), org_id: maybe(uuid) })),
  scopes: texts,
  role: orNull(text),
  plan: orNull(text),
  limit: orNull(Type.Object({ requests_per_unit: count, unit: text })),
  expires_at: orNull(time),
  allowed_networks: texts,
  metadata: object,
  disabled: flag,
  created_at: time,
  updated_at: time,
  last_used_at: orNull(time),
  rotated_from: orNull(uuid),
};

const apiKey = { ...ownApiKey, admin_scopes: texts, created_by: text };

const newKey = Type.String({ description: 'Shown once.' });

const organization = Type.Object({
  id: uuid,
  name: text,
  slug: text,
  plan: maybe(text),
  limit: maybe(Type.Object({ requests_per_unit: count, unit: text })),
  metadata: object,
  domain_role: maybe(
    Type.String({ description: 'Role of users who join by a verified domain of their email.' }),
  ),
  role: maybe(Type.String({ description: 'Role of the user. Absent in responses to administrators.' })),
  created_at: time,
  updated_at: time,
});

const invitation = Type.Object({
  id: uuid,
  email: text,
  role: text,
  invited_by: maybe(uuid),
  created_at: time,
  expires_at: time,
});

const domain = Type.Object({
  domain: text,
  verified_at: orNull(time),
  record: maybe(
    Type.Object(
      { type: text, name: text, value: text },
      { description: 'The DNS record that proves the domain, until it is verified.' },
    ),
  ),
});

const member = Type.Object({ user_id: uuid, role: text, email: text, name: maybe(text), created_at: time });

/** Schemas of responses of one route or a few. */
export const responses = {
  Empty: Type.Object({}),
  Document: Type.Record(Type.String(), Type.Unknown()),
  Health: Type.Object({ version: text, name: text, description: text }),
  Readiness: Type.Object({ status: text, missing_indexes: maybe(texts) }),
  KeySet: Type.Object({ keys: Type.Array(object) }, { description: 'RFC 7517 §5.' }),
  ...oauthResponses,
  SentMessage: Type.Object({
    message_id: maybe(Type.String({ description: 'Of a text message, as its gateway returned it.' })),
  }),
  AcceptedLink: Type.Object(
    { msg: text, code: text },
    { description: 'The link to the other address must be followed, too.' },
  ),
  SessionList: Type.Object({ sessions: Type.Array(sessionInfo) }),
  ProviderUrl: Type.Object({ url: text }),
  EnrolledFactor: Type.Object({
    id: uuid,
    type: text,
    friendly_name: maybe(text),
    totp: maybe(Type.Object({ qr_code: text, secret: text, uri: text })),
    phone: maybe(text),
  }),
  Challenge: Type.Object({
    id: uuid,
    type: text,
    expires_at: unixTime,
    webauthn: maybe(Type.Object({ type: Type.Enum(['create', 'request']), credential_options: object })),
  }),
  RemovedFactor: Type.Object({ id: uuid }),
  RecoveryCodes: Type.Object({
    id: uuid,
    type: text,
    friendly_name: maybe(text),
    total: count,
    remaining: maybe(count),
    codes: maybe(Type.Array(text, { description: 'Shown once.' })),
  }),
  PasskeyChallenge: Type.Object({ challenge_id: uuid, options: object, expires_at: unixTime }),
  AuditEntry: Type.Object({ id: uuid, payload: object, created_at: time, ip_address: text }),
  Event: event,
  EventList: Type.Object({ events: Type.Array(event) }),
  Webhook: webhook,
  WebhookList: Type.Object({ webhooks: Type.Array(webhook) }),
  WebhookTest: Type.Object({ delivered: flag, error: maybe(text) }),
  ServiceSettings: Type.Unsafe<ServiceSettings>(serviceSettingsSchema),
  SigningKeys: Type.Object({
    variable: Type.String({ description: 'The setting that has them.', examples: ['SVC_JWT_KEYS_FILE'] }),
    file: maybe(Type.String({ examples: ['/etc/tollgate/jwt-keys/keys.json'] })),
    token_lifetime: Type.Integer({
      description: 'Longest lifetime of a token, in seconds.',
      examples: [3600],
    }),
    keys: Type.Array(
      Type.Object({
        kid: Type.String({ examples: ['2026-01-01-3f7c91ab'] }),
        algorithm: Type.String({ examples: ['ES256'] }),
        state: Type.Enum(['signs', 'upcoming', 'verifies']),
        in_jwks: Type.Boolean({ description: 'Secrets are not in the JWKS.' }),
        added_at: maybe(time),
        signs_since: maybe(time),
        replaced_at: maybe(time),
        last_verified_at: maybe(
          Type.String({
            format: 'date-time',
            description:
              'When this replica verified a signature of it last. Tokens are verified once while they are cached.',
          }),
        ),
      }),
    ),
    next: Type.Object({
      step: Type.Enum(['new', 'rotate', 'retire']),
      reason: Type.String({ examples: ['no rotation is under way'] }),
      not_before: maybe(time),
    }),
  }),
  RedirectCheck: Type.Object({
    to: text,
    allowed: flag,
    redirects_to: text,
    reason: maybe(text),
    rules: Type.Array(Type.Object({ source: text, rule: text, matches: flag, reason: maybe(text) })),
  }),
  Organization: organization,
  OrganizationList: Type.Object({
    organizations: Type.Array(organization),
    joinable: Type.Array(Type.Object({ id: uuid, name: text, slug: text }), {
      description: 'Organizations that the user may join by the domain of their email.',
    }),
  }),
  Domain: domain,
  DomainList: Type.Object({ domains: Type.Array(domain) }),
  OrganizationPage: Type.Object({
    organizations: Type.Array(organization),
    pagination: Type.Object(pageMembers),
  }),
  Member: member,
  Invitation: invitation,
  InvitationList: Type.Object({ invitations: Type.Array(invitation) }),
  MemberList: Type.Object({ members: Type.Array(member) }),
  MemberPage: Type.Object({
    members: Type.Array(member),
    pagination: maybe(Type.Object(pageMembers, { description: 'Of a list by cursor.' })),
  }),
  OrganizationToken: Type.Object({
    access_token: Type.String({ description: 'A JWT with `org_id`, `org_role` and `org_slug`.' }),
    token_type: Type.Literal('bearer'),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    expires_at: unixTime,
    organization: maybe(Type.Object({ id: uuid, slug: text, role: text })),
  }),
  ApiKey: Type.Object(apiKey),
  CreatedApiKey: Type.Object({ ...apiKey, key: newKey }),
  OwnApiKey: Type.Object(ownApiKey),
  CreatedOwnApiKey: Type.Object({ ...ownApiKey, key: newKey }),
  OwnApiKeyList: Type.Object({ api_keys: Type.Array(Type.Object(ownApiKey)) }),
  VerifiedApiKey: Type.Object({
    valid: flag,
    code: Type.String({ description: '`ok`, or the error code of the gateway.' }),
    caller: maybe(anyObject('Its attributes.')),
    key: maybe(Type.Object({ id: uuid, name: text, admin_scopes: texts })),
  }),
  VerifiedCredential: Type.Object({
    valid: flag,
    code: Type.String({ description: '`ok`, or the error code of the admin API.' }),
    administrator: maybe(
      Type.Object({
        kind: Type.Enum(['administrator', 'api_key', 'service_token']),
        id: text,
        name: Type.String({ description: 'Email address or phone number of a person, or name of a key.' }),
        admin_scopes: texts,
      }),
    ),
  }),
  CheckExplanation: Type.Object({
    request: anyObject('Method, host and path.'),
    reason: maybe(Type.String({ description: 'Why no policy was found.' })),
    route: maybe(anyObject('Rules of routes that take the request, and how they were found.')),
    caller: maybe(anyObject('Attributes of the caller, or its `problem`.')),
    policies: maybe(
      Type.Array(anyObject('A policy with its rule, its access, and its limits with their counters.')),
    ),
    decision: anyObject('The answer that the gateway would get.'),
  }),
  ApiKeyList: Type.Object({
    api_keys: Type.Array(Type.Object(apiKey)),
    pagination: Type.Object(pageMembers),
  }),
  CustomProvider: customProvider,
  ...clientResponses,
  CustomProviderCheck: Type.Object({
    ok: flag,
    problem: maybe(text),
    discovery_document: maybe(anyObject('The metadata that the provider publishes now.')),
  }),
  TokenIssuerList: tokenIssuerList,
  CustomProviderList: Type.Object({ providers: Type.Array(customProvider) }),
  ImportResult: Type.Object({
    imported: count,
    skipped: count,
    failed: count,
    last_line: count,
    errors: Type.Array(Type.Object({ line: count, code: text, message: text })),
    msg: maybe(text),
  }),
} as const satisfies Record<string, TSchema>;
