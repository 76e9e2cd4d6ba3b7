import { bool, duration, port, type SettingsCheck, text } from '@tollgate/kit/settings';
import { svc } from './builders.ts';

const group = 'External authorization';

/** What Envoy is answered when it asks whether a request may pass. */
export const extAuthzSettings = {
  extAuthzEnabled: bool({
    ...svc('EXT_AUTHZ_ENABLED'),
    group,
    default: true,
    doc: 'Answer the checks of Envoy (`ext_authz`), over gRPC and over HTTP.',
  }),
  extAuthzHost: text({
    ...svc('EXT_AUTHZ_HOST'),
    group,
    default: '',
    doc: 'Address to listen on; empty for that of the API, as in development mode. Keep it inside the cluster: any client that reaches it can test tokens.',
  }),
  extAuthzGrpcPort: port({
    ...svc('EXT_AUTHZ_GRPC_PORT'),
    group,
    default: 9001,
    doc: 'TCP port of the gRPC server (`grpc_service`); 0 picks a free one.',
  }),
  extAuthzHttpPort: port({
    ...svc('EXT_AUTHZ_HTTP_PORT'),
    group,
    default: 9003,
    doc: 'TCP port of the HTTP server (`http_service`); 0 picks a free one.',
  }),
  extAuthzTlsCert: text({
    ...svc('EXT_AUTHZ_TLS_CERT'),
    group,
    default: '',
    doc: 'PEM file with the certificate chain of both servers; read again when it changes. Empty for no TLS.',
  }),
  extAuthzTlsKey: text({
    ...svc('EXT_AUTHZ_TLS_KEY'),
    group,
    default: '',
    doc: 'PEM file with its private key; read again when it changes.',
  }),
  extAuthzTlsCa: text({
    ...svc('EXT_AUTHZ_TLS_CA'),
    group,
    default: '',
    doc: 'PEM file with the authorities that client certificates must come from. When set, clients must present one.',
  }),
  extAuthzTlsClientSan: text({
    ...svc('EXT_AUTHZ_TLS_CLIENT_SAN'),
    group,
    default: '',
    doc: 'DNS name that a client certificate must carry; needs SVC_EXT_AUTHZ_TLS_CA.',
  }),
  extAuthzRoutesFile: text({
    ...svc('EXT_AUTHZ_ROUTES_FILE'),
    group,
    default: '',
    doc: 'YAML file with the rules of routes; read again when it changes. Empty: every path needs a signed-in user.',
  }),
  extAuthzDefaultPlan: text({
    ...svc('EXT_AUTHZ_DEFAULT_PLAN'),
    group,
    default: 'free',
    doc: 'Plan of users whose `app_metadata` names none.',
  }),
  extAuthzMaxStalenessMs: duration({
    ...svc('EXT_AUTHZ_MAX_STALENESS'),
    group,
    default: '10s',
    min: '1s',
    doc: 'Longest time that a ban, another role or the end of a session may take to be seen when the notification of it is lost.',
  }),
  extAuthzSessionCheck: bool({
    ...svc('EXT_AUTHZ_SESSION_CHECK'),
    group,
    default: true,
    doc: 'Ask for the state of user and session; `false` believes the access token until it expires.',
  }),
};

type Check = SettingsCheck<typeof extAuthzSettings>;

const pair: Check = (s, { variableName }) =>
  (s.extAuthzTlsCert === '') === (s.extAuthzTlsKey === '')
    ? undefined
    : {
        variable: variableName(s.extAuthzTlsCert === '' ? 'extAuthzTlsCert' : 'extAuthzTlsKey'),
        expected: 'a PEM file: certificate and key belong together',
      };

const clientTlsNeedsServerTls: Check = (s, { variableName }) =>
  s.extAuthzTlsCa !== '' && s.extAuthzTlsCert === ''
    ? {
        variable: variableName('extAuthzTlsCert'),
        expected: `a PEM file, because ${variableName('extAuthzTlsCa')} is set`,
      }
    : undefined;

const sanNeedsAuthority: Check = (s, { variableName }) =>
  s.extAuthzTlsClientSan !== '' && s.extAuthzTlsCa === ''
    ? {
        variable: variableName('extAuthzTlsCa'),
        expected: `a PEM file, because ${variableName('extAuthzTlsClientSan')} is set`,
      }
    : undefined;

/** What must fit together among the settings of external authorization. */
export const extAuthzChecks: readonly Check[] = [pair, clientTlsNeedsServerTls, sanNeedsAuthority];
