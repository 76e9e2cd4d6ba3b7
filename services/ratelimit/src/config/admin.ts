import type { SettingProblem, SettingsCheck, SettingValues } from '@tollgate/kit/settings';
import { bool, port, text } from '@tollgate/kit/settings';
import { adminTokensForm, parseAdminTokens } from './admin-tokens.ts';

const group = 'Counter API';

export const adminSettings = {
  adminPort: port({
    env: 'ADMIN_PORT',
    group,
    default: 0,
    doc: 'TCP port of the counter API, which reads, resets and overrides counters; 0 disables it. Requires a token, client certificates or both. Set it on all replicas.',
  }),
  adminHost: text({
    env: 'ADMIN_HOST',
    group,
    default: '127.0.0.1',
    doc: 'Address of the counter API. Anything but loopback requires TLS, or ADMIN_PLAINTEXT.',
  }),
  adminPlaintext: bool({
    env: 'ADMIN_PLAINTEXT',
    group,
    default: false,
    doc: 'Serve the counter API to the network without TLS, which lets others read tokens on the way. Only for a network that encrypts, such as a service mesh.',
  }),
  adminToken: text({
    env: 'ADMIN_TOKEN',
    group,
    default: '',
    secret: true,
    matches: { pattern: /^([\x21-\x7e]{16,})?$/, form: 'at least 16 ASCII characters without blanks' },
    doc: 'Token with all rights that callers of the counter API send, `Authorization: Bearer <token>`. It signs the ids of reservations, too. The same on all replicas.',
  }),
  adminTokens: text({
    env: 'ADMIN_TOKENS',
    group,
    default: '',
    secret: true,
    doc: 'More tokens, each with a name for audit lines and rights: `<name>:<rights>:<token>`, separated by commas. Rights are `read`, `reserve` and `write`, joined by `+`. `reserve` requires ADMIN_TOKEN.',
  }),
  adminKeysUrl: text({
    env: 'ADMIN_KEYS_URL',
    group,
    default: '',
    matches: {
      pattern: /^$|^https?:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/,
      form: 'an http or https URL without user and query',
    },
    doc: 'Base URL of the auth server. Callers may then send its API keys, and access tokens of administrators: the admin scope `limits:read` gives the right `read`, `limits:write` all of them. A result is kept for 5 seconds.',
  }),
  adminKeysToken: text({
    env: 'ADMIN_KEYS_TOKEN',
    group,
    default: '',
    secret: true,
    doc: '`SVC_ADMIN_VERIFIER_TOKEN` of the auth server, or an API key of it with the admin scope `keys:verify`: checks the keys and access tokens of callers.',
  }),
  adminTlsCert: text({
    env: 'ADMIN_TLS_CERT',
    group,
    default: '',
    doc: 'PEM file with the certificate chain of the counter API, which serves TLS then; reloaded when it changes.',
  }),
  adminTlsKey: text({
    env: 'ADMIN_TLS_KEY',
    group,
    default: '',
    doc: 'PEM file with its private key; reloaded when it changes.',
  }),
  adminTlsClientCacert: text({
    env: 'ADMIN_TLS_CLIENT_CACERT',
    group,
    default: '',
    doc: 'PEM file with the certificate authorities of callers. When set, callers must present a certificate, besides the token if there is one.',
  }),
  adminTlsClientSan: text({
    env: 'ADMIN_TLS_CLIENT_SAN',
    group,
    default: '',
    doc: 'DNS name that certificates of callers must have; requires ADMIN_TLS_CLIENT_CACERT.',
  }),
};

type Spec = typeof adminSettings;
type Check = SettingsCheck<Spec>;

const needsCredentials: Check = (s, { problem }) =>
  s.adminPort !== 0 &&
  s.adminToken === '' &&
  s.adminTokens === '' &&
  s.adminKeysUrl === '' &&
  s.adminTlsClientCacert === ''
    ? problem(
        'adminToken',
        'a token of at least 16 characters (or client certificates, ADMIN_TLS_CLIENT_CACERT), because ADMIN_PORT is set',
      )
    : undefined;

const validTokens: Check = (s, { problem }) => {
  const tokens = parseAdminTokens(s.adminTokens);
  if (tokens === undefined) return problem('adminTokens', adminTokensForm);
  if (s.adminToken !== '' && tokens.some(({ token }) => token === s.adminToken))
    return problem('adminTokens', 'tokens other than that of ADMIN_TOKEN, which has all rights');
  const reserves = tokens.some(({ rights }) => rights.has('reserve'));
  return reserves && s.adminToken === ''
    ? problem(
        'adminToken',
        'a token of at least 16 characters, which signs ids, because ADMIN_TOKENS has the right reserve',
      )
    : undefined;
};

const keysPair: Check = (s, { problem }) =>
  (s.adminKeysUrl === '') === (s.adminKeysToken === '')
    ? undefined
    : problem(
        s.adminKeysUrl === '' ? 'adminKeysUrl' : 'adminKeysToken',
        'a value: ADMIN_KEYS_URL and ADMIN_KEYS_TOKEN belong together',
      );

const tlsPair: Check = (s, { problem }) =>
  (s.adminTlsCert === '') === (s.adminTlsKey === '')
    ? undefined
    : problem(
        s.adminTlsCert === '' ? 'adminTlsCert' : 'adminTlsKey',
        'a PEM file: certificate and key belong together',
      );

const clientCertificatesNeedTls: Check = (s, { problem }) =>
  s.adminTlsClientCacert !== '' && s.adminTlsCert === ''
    ? problem('adminTlsCert', 'a PEM file, because ADMIN_TLS_CLIENT_CACERT is set')
    : undefined;

const sanNeedsAuthority: Check = (s, { problem }) =>
  s.adminTlsClientSan !== '' && s.adminTlsClientCacert === ''
    ? problem('adminTlsClientCacert', 'a PEM file, because ADMIN_TLS_CLIENT_SAN is set')
    : undefined;

/** A token in plain HTTP can be read on the way. */
const networkNeedsTls: Check = (s, { problem }): SettingProblem | undefined =>
  s.adminPort !== 0 && s.adminTlsCert === '' && !s.adminPlaintext && !isLoopback(s)
    ? problem(
        'adminHost',
        'a loopback address such as 127.0.0.1, because ADMIN_TLS_CERT is not set: set ADMIN_PLAINTEXT=true in a network that encrypts',
      )
    : undefined;

function isLoopback({ adminHost }: SettingValues<Spec>): boolean {
  return adminHost === 'localhost' || adminHost === '::1' || /^127(\.\d{1,3}){3}$/.test(adminHost);
}

export const adminChecks: readonly Check[] = [
  needsCredentials,
  validTokens,
  keysPair,
  tlsPair,
  clientCertificatesNeedTls,
  sanNeedsAuthority,
  networkNeedsTls,
];
