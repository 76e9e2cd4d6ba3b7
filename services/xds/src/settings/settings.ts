import {
  defineSettings,
  type Environment,
  type ParsedSettings,
  parseSettings,
  type SettingsCheck,
  type SettingsOf,
} from '@tollgate/kit/settings';
import { connectionSettings, serverSettings, tlsSettings } from './server-settings.ts';
import { kubernetesSettings, sourceSettings, statusSettings } from './source-settings.ts';

/** Every setting of the service, in the order of docs/settings-xds.md. */
export const settingsSpec = defineSettings({
  ...sourceSettings,
  ...kubernetesSettings,
  ...statusSettings,
  ...serverSettings,
  ...connectionSettings,
  ...tlsSettings,
});

/** The settings as the composition root sees them. */
export type Settings = SettingsOf<typeof settingsSpec>;

type Check = SettingsCheck<typeof settingsSpec>;

/** The source that the settings choose: `auto` is `kubernetes` inside a pod and `folder` elsewhere. */
export function chosenSource({
  source,
  kubernetesServiceHost,
}: Pick<Settings, 'source' | 'kubernetesServiceHost'>): 'kubernetes' | 'folder' {
  if (source !== 'auto') return source;
  return kubernetesServiceHost === '' ? 'folder' : 'kubernetes';
}

const folderIsNamed: Check = (s, { nameOf }) =>
  chosenSource(s) === 'folder' && s.folder === ''
    ? {
        variable: nameOf('folder'),
        expected: `a directory of manifests, because ${nameOf('source')} is ${s.source === 'auto' ? 'auto and this is no pod' : 'folder'}; for a cluster set ${nameOf('source')}=kubernetes`,
      }
    : undefined;

const tlsPair: Check = (s, { nameOf }) =>
  (s.grpcTlsCert === '') === (s.grpcTlsKey === '')
    ? undefined
    : {
        variable: nameOf(s.grpcTlsCert === '' ? 'grpcTlsCert' : 'grpcTlsKey'),
        expected: 'a PEM file: certificate and key belong together',
      };

const clientAuthorityNeedsTls: Check = (s, { nameOf }) =>
  s.grpcClientCacert !== '' && s.grpcTlsCert === ''
    ? {
        variable: nameOf('grpcTlsCert'),
        expected: `a PEM file, because ${nameOf('grpcClientCacert')} is set`,
      }
    : undefined;

const sanNeedsAuthority: Check = (s, { nameOf }) =>
  s.grpcClientSan !== '' && s.grpcClientCacert === ''
    ? {
        variable: nameOf('grpcClientCacert'),
        expected: `a PEM file, because ${nameOf('grpcClientSan')} is set`,
      }
    : undefined;

/** Otherwise two replicas could both take themselves for the holder. */
const leaseTimes: Check = (s, { nameOf, shownOf }) => {
  const value = shownOf('leaseRenewDeadlineMs');
  if (s.leaseRetryPeriodMs < s.leaseRenewDeadlineMs && s.leaseRenewDeadlineMs < s.leaseDurationMs)
    return undefined;
  return {
    variable: nameOf('leaseRenewDeadlineMs'),
    ...(value === undefined ? {} : { value }),
    expected: `more than ${nameOf('leaseRetryPeriodMs')} and less than ${nameOf('leaseDurationMs')}`,
  };
};

/** Reads the settings from the environment; all problems at once. */
export function readSettings(env: Environment): ParsedSettings<typeof settingsSpec> {
  return parseSettings(settingsSpec, env, {
    checks: [folderIsNamed, tlsPair, clientAuthorityNeedsTls, sanNeedsAuthority, leaseTimes],
  });
}
