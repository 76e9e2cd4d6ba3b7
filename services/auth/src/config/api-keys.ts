import { bool, int, list, oneOf, type SettingsCheck, text } from '@tollgate/kit/settings';
import { hostList, svc } from './builders.ts';

const group = 'API keys';

export const apiKeySettings = {
  apiKeysEnabled: bool({
    ...svc('API_KEYS_ENABLED'),
    group,
    default: false,
    doc: 'Accept API keys in ext_authz, and serve `/admin/api-keys`.',
  }),
  apiKeysSelfService: bool({
    ...svc('API_KEYS_SELF_SERVICE'),
    group,
    default: false,
    doc: 'Let users manage keys of their own, and members those of their organization: `/user/api-keys`, `/organizations/{id}/api-keys`, and hosted pages.',
  }),
  apiKeysAal: oneOf(['aal1', 'aal2'], {
    ...svc('API_KEYS_AAL'),
    group,
    default: 'aal1',
    doc: 'Assurance level that a session needs to create, change and rotate own keys. Users with a second factor always need `aal2`.',
  }),
  apiKeysPerUser: int({
    ...svc('API_KEYS_PER_USER'),
    group,
    default: 25,
    min: 1,
    max: 1_000,
    doc: 'Keys that a user may create. Expired ones do not count. Administrators may create more.',
  }),
  apiKeysPerOrganization: int({
    ...svc('API_KEYS_PER_ORGANIZATION'),
    group,
    default: 100,
    min: 1,
    max: 1_000,
    doc: 'Keys of an organization that its members may create. Expired ones do not count. Administrators may create more.',
  }),
  apiKeyScopes: list({
    ...svc('API_KEYS_SCOPES'),
    group,
    default: [],
    doc: 'Scopes that users may give to keys of their own and of their organizations. Administrators may give any.',
  }),
  apiKeyRoles: list({
    ...svc('API_KEYS_ROLES'),
    group,
    default: [],
    doc: 'Roles from the lowest to the highest. The key of a user may have a lower role than its owner by this list, otherwise it has the role of its owner.',
  }),
  apiKeyPrefix: text({
    ...svc('API_KEY_PREFIX'),
    group,
    default: 'tgk',
    matches: {
      pattern: /^[a-z](?:[a-z0-9_]{0,30}[a-z0-9])?$/,
      form: 'lower case letters, digits and _, at most 32',
    },
    doc: 'How new API keys start, before a `_`.',
  }),
  apiKeyImportedPrefixes: list({
    ...svc('API_KEYS_IMPORTED_PREFIXES'),
    group,
    default: [],
    doc: 'How imported keys start, and keys with an earlier `SVC_API_KEY_PREFIX`: `sk_live_,acme-`. `*`: any text in the headers of the next setting. Keys that start otherwise are rejected without a read of the database.',
  }),
  extAuthzApiKeyHeaders: hostList({
    ...svc('EXT_AUTHZ_API_KEY_HEADERS'),
    group,
    default: ['x-api-key'],
    doc: 'Request headers that may have an API key, besides `Authorization: Bearer`. They never reach upstreams.',
  }),
  adminVerifierToken: text({
    ...svc('ADMIN_VERIFIER_TOKEN'),
    group,
    default: '',
    secret: true,
    matches: { pattern: /^([\w\-.~+/]{32,}=*)?$/, form: 'at least 32 letters, digits or -._~+/' },
    doc: 'Token with which the limiter (`ADMIN_KEYS_TOKEN`) and the xDS server (`XDS_ADMIN_KEYS_TOKEN`) check the credentials of administrators, instead of an API key. It has the admin scope `keys:verify` only, and works without `SVC_API_KEYS_ENABLED`.',
  }),
  rateLimitApiKeys: int({
    ...svc('RATE_LIMIT_API_KEYS'),
    group,
    default: 60,
    min: 0,
    doc: 'Wrong API keys of an address in a minute, for each replica. Keys in use are accepted beyond it. 0: no limit.',
  }),
};

type Check = SettingsCheck<typeof apiKeySettings>;

const headerForm = /^[!#$%&'*+.^_`|~\w-]+$/;
/** Headers with another meaning for ext_authz. */
const reservedHeaders = ['authorization', 'x-forwarded-for', 'cookie', 'host'];

const headersAreUsable: Check = (s, { problem }) =>
  s.extAuthzApiKeyHeaders.every((name) => headerForm.test(name) && !reservedHeaders.includes(name))
    ? undefined
    : problem('extAuthzApiKeyHeaders', `names of headers, without ${reservedHeaders.join(', ')}`);

const selfServiceNeedsKeys: Check = (s, { problem, variableName }) =>
  s.apiKeysSelfService && !s.apiKeysEnabled
    ? problem('apiKeysEnabled', `true, because ${variableName('apiKeysSelfService')} is set`)
    : undefined;

export const apiKeyChecks: readonly Check[] = [headersAreUsable, selfServiceNeedsKeys];
