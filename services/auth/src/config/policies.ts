import { bool, type SettingsCheck, text } from '@tollgate/kit/settings';
import { svc } from './builders.ts';
import type { extAuthzSettings } from './ext-authz.ts';

const group = 'Access policies';

export const policySettings = {
  extAuthzPolicyServer: text({
    ...svc('EXT_AUTHZ_POLICY_SERVER'),
    group,
    default: '',
    matches: { pattern: /^$|^(?:\[[\d:a-fA-F.]+\]|[\w.-]+):\d{1,5}$/, form: 'host:port, without http://' },
    doc: 'ADS address of the xDS server, `host:port`, for access policies. They go before the routes file, which is for hosts without a policy. Until the first policies have arrived, the server is not ready, and all checks are denied with 503. Requires SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS, which counts their limits. Empty: no policies.',
  }),
  extAuthzPolicyServerNodeId: text({
    ...svc('EXT_AUTHZ_POLICY_SERVER_NODE_ID'),
    group,
    default: 'auth',
    doc: 'Node id sent to the xDS server. Give each replica its own, such as the Pod name.',
  }),
  extAuthzPolicyServerToken: text({
    ...svc('EXT_AUTHZ_POLICY_SERVER_TOKEN'),
    group,
    default: '',
    secret: true,
    doc: 'Bearer token for the xDS server, one of its `XDS_GRPC_TOKEN_FILE`.',
  }),
  extAuthzPolicyServerTls: bool({
    ...svc('EXT_AUTHZ_POLICY_SERVER_TLS'),
    group,
    default: false,
    doc: 'Connect to the xDS server with TLS.',
  }),
  extAuthzPolicyServerTlsCa: text({
    ...svc('EXT_AUTHZ_POLICY_SERVER_TLS_CA'),
    group,
    default: '',
    doc: 'PEM file with the CAs of the xDS server. Empty: those of the system. This and the next two are reloaded when they change.',
  }),
  extAuthzPolicyServerTlsCert: text({
    ...svc('EXT_AUTHZ_POLICY_SERVER_TLS_CERT'),
    group,
    default: '',
    doc: 'PEM file with the client certificate for the xDS server.',
  }),
  extAuthzPolicyServerTlsKey: text({
    ...svc('EXT_AUTHZ_POLICY_SERVER_TLS_KEY'),
    group,
    default: '',
    doc: 'PEM file with its private key.',
  }),
  extAuthzPolicyServerTlsSan: text({
    ...svc('EXT_AUTHZ_POLICY_SERVER_TLS_SAN'),
    group,
    default: '',
    doc: 'DNS name that the certificate of the xDS server must have, instead of the host of its address.',
  }),
};

type Check = SettingsCheck<typeof policySettings & typeof extAuthzSettings>;

/** Otherwise policies with limits would limit nothing. */
const limitsNeedService: Check = (s, { problem, variableName }) =>
  s.extAuthzPolicyServer !== '' && s.extAuthzRateLimitAddress === ''
    ? problem('extAuthzRateLimitAddress', `host:port, because ${variableName('extAuthzPolicyServer')} is set`)
    : undefined;

const pair: Check = (s, { problem }) =>
  (s.extAuthzPolicyServerTlsCert === '') === (s.extAuthzPolicyServerTlsKey === '')
    ? undefined
    : problem(
        s.extAuthzPolicyServerTlsCert === '' ? 'extAuthzPolicyServerTlsCert' : 'extAuthzPolicyServerTlsKey',
        'a PEM file: certificate and key must be set together',
      );

const tlsParts = [
  'extAuthzPolicyServerTlsCa',
  'extAuthzPolicyServerTlsCert',
  'extAuthzPolicyServerTlsSan',
] as const;

/** Otherwise a protected connection would silently be plaintext. */
const partsNeedTls: Check = (s, { problem, variableName }) => {
  const part = tlsParts.find((name) => s[name] !== '');
  return part === undefined || s.extAuthzPolicyServerTls
    ? undefined
    : problem('extAuthzPolicyServerTls', `true, because ${variableName(part)} is set`);
};

export const policyChecks: readonly Check[] = [limitsNeedService, pair, partsNeedTls];
