import type { SettingsCheck } from '@tollgate/kit/settings';
import type { extAuthzSettings } from './ext-authz-settings.ts';

type Check = SettingsCheck<typeof extAuthzSettings>;

const pair: Check = (s, { nameOf }) =>
  (s.extAuthzTlsCert === '') === (s.extAuthzTlsKey === '')
    ? undefined
    : {
        variable: nameOf(s.extAuthzTlsCert === '' ? 'extAuthzTlsCert' : 'extAuthzTlsKey'),
        expected: 'a PEM file: certificate and key belong together',
      };

const clientTlsNeedsServerTls: Check = (s, { nameOf }) =>
  s.extAuthzTlsCa !== '' && s.extAuthzTlsCert === ''
    ? {
        variable: nameOf('extAuthzTlsCert'),
        expected: `a PEM file, because ${nameOf('extAuthzTlsCa')} is set`,
      }
    : undefined;

const sanNeedsAuthority: Check = (s, { nameOf }) =>
  s.extAuthzTlsClientSan !== '' && s.extAuthzTlsCa === ''
    ? {
        variable: nameOf('extAuthzTlsCa'),
        expected: `a PEM file, because ${nameOf('extAuthzTlsClientSan')} is set`,
      }
    : undefined;

/** What must fit together among the settings of external authorization. */
export const extAuthzChecks: readonly Check[] = [pair, clientTlsNeedsServerTls, sanNeedsAuthority];
