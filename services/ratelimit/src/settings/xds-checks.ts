import type { SettingsCheck } from '@tollgate/kit/settings';
import type { ruleSettings } from './rule-settings.ts';
import type { xdsSettings } from './xds-settings.ts';

type Check = SettingsCheck<typeof ruleSettings & typeof xdsSettings>;

const clientPair: Check = (s, { nameOf }) =>
  (s.xdsClientTlsCert === '') === (s.xdsClientTlsKey === '')
    ? undefined
    : {
        variable: nameOf(s.xdsClientTlsCert === '' ? 'xdsClientTlsCert' : 'xdsClientTlsKey'),
        expected: 'a PEM file: certificate and key belong together',
      };

const tlsParts = ['xdsServerTlsCacert', 'xdsClientTlsCert', 'xdsServerTlsSan'] as const;

/** What was meant to be protected would travel in the clear. */
const tlsPartsNeedTls: Check = (s, { nameOf }) => {
  const part = tlsParts.find((name) => s[name] !== '');
  return part === undefined || s.xdsServerUseTls || s.configType !== 'GRPC_XDS_SOTW'
    ? undefined
    : {
        variable: nameOf('xdsServerUseTls'),
        value: 'false',
        expected: `true, because ${nameOf(part)} is set`,
      };
};

/** Names that gRPC takes for text; those that begin with `grpc-` are its own, those that end in `-bin` hold bytes. */
const headerName = /^(?!grpc-)(?!.*-bin$)[0-9a-z_.-]+$/i;
const headerValue = /^[\x20-\x7e]*$/;

const headersAreLegal: Check = (s, { nameOf }) => {
  const bad = Object.entries(s.xdsAdditionalHeaders).find(
    ([name, value]) => !headerName.test(name) || !headerValue.test(value),
  );
  return bad === undefined
    ? undefined
    : {
        variable: nameOf('xdsAdditionalHeaders'),
        value: `(hidden), in the header ${JSON.stringify(bad[0])}`,
        expected: 'names of letters, digits, - _ and ., not grpc-… or …-bin; values of printable ASCII',
      };
};

/** What must fit together among the settings of the management server. */
export const xdsChecks: readonly Check[] = [clientPair, tlsPartsNeedTls, headersAreLegal];
