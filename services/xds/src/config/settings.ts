import type { ServerTlsFiles } from '@tollgate/kit/grpc/credentials';
import {
  defineSettings,
  type Environment,
  type ParsedSettings,
  parseSettings,
  type SettingsCheck,
  type SettingsOf,
} from '@tollgate/kit/settings';
import type { TracingOptions } from '@tollgate/kit/telemetry';
import { hostAndPort } from '@tollgate/kit/text';
import type { AdsServerOptions } from '../ads/server.ts';
import type { SecretCertificatesOptions } from '../certificates/certificates.ts';
import type { KubeConfigOptions } from '../kube/config.ts';
import { connectionSettings, serverSettings, tlsSettings, tracingSettings } from './server-settings.ts';
import { kubernetesSettings, sourceSettings, statusSettings } from './source-settings.ts';

/** Every setting of the service, in the order of docs/settings-xds.md. */
export const settingsSpec = defineSettings({
  ...sourceSettings,
  ...kubernetesSettings,
  ...statusSettings,
  ...serverSettings,
  ...connectionSettings,
  ...tlsSettings,
  ...tracingSettings,
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

/** Whether ADS is served over TLS. */
function hasTls({ grpcTlsCert, grpcOwnCa }: Pick<Settings, 'grpcTlsCert' | 'grpcOwnCa'>): boolean {
  return grpcTlsCert !== '' || grpcOwnCa;
}

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/;

const plaintextIsWanted: Check = (s, { nameOf }) =>
  s.grpcHost === '' || loopback.test(s.grpcHost) || hasTls(s) || s.grpcPlaintext
    ? undefined
    : {
        variable: nameOf('grpcHost'),
        value: s.grpcHost,
        expected: `127.0.0.1, because ADS has no TLS: set ${nameOf('grpcTlsCert')}, ${nameOf('grpcTlsKey')} and ${nameOf('grpcClientCacert')}, or ${nameOf('grpcOwnCa')}=true in a cluster, or ${nameOf('grpcPlaintext')}=true for a network that you trust`,
      };

const oneKindOfTls: Check = (s, { nameOf }) => {
  const chosen = [
    ...(s.grpcTlsCert === '' ? [] : [nameOf('grpcTlsCert')]),
    ...(s.grpcOwnCa ? [nameOf('grpcOwnCa')] : []),
    ...(s.grpcPlaintext ? [nameOf('grpcPlaintext')] : []),
  ];
  return chosen.length < 2
    ? undefined
    : { variable: chosen.join(' and '), expected: 'one of them: they exclude each other' };
};

const ownCaNeedsCluster: Check = (s, { nameOf }) =>
  s.grpcOwnCa && chosenSource(s) !== 'kubernetes'
    ? {
        variable: nameOf('grpcOwnCa'),
        expected: `false with ${nameOf('source')}=folder: certificates are kept in Secrets of a cluster`,
      }
    : undefined;

const ownCaNeedsNames: Check = (s, { nameOf }) =>
  s.grpcOwnCa && s.serverNames.length === 0
    ? {
        variable: nameOf('serverNames'),
        expected: `DNS names such as tollgate-xds.tollgate.svc, because ${nameOf('grpcOwnCa')} is true`,
      }
    : undefined;

const clientSecretForm = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\/[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/;

const clientSecretsArePaths: Check = (s, { nameOf }) => {
  const wrong = s.clientSecrets.find((path) => !clientSecretForm.test(path));
  return wrong === undefined
    ? undefined
    : { variable: nameOf('clientSecrets'), value: wrong, expected: 'namespace/name, separated by commas' };
};

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
    checks: [
      folderIsNamed,
      plaintextIsWanted,
      oneKindOfTls,
      ownCaNeedsCluster,
      ownCaNeedsNames,
      clientSecretsArePaths,
      tlsPair,
      clientAuthorityNeedsTls,
      sanNeedsAuthority,
      leaseTimes,
    ],
  });
}

/** Where ADS is served: to the network only with TLS, or where plaintext was asked for. */
export function grpcHost(s: Settings): string {
  return s.grpcHost || (hasTls(s) || s.grpcPlaintext ? '0.0.0.0' : '127.0.0.1');
}

/** The part of the settings that says where ADS is served. */
export function adsServerOptions(s: Settings): AdsServerOptions {
  return {
    address: hostAndPort(grpcHost(s), s.grpcPort),
    maxStreamsPerPeer: s.maxStreamsPerPeer,
    maxConnectionAgeMs: s.maxConnectionAgeMs,
    maxConnectionAgeGraceMs: s.maxConnectionAgeGraceMs,
    keepaliveTimeMs: s.keepaliveTimeMs,
    keepaliveTimeoutMs: s.keepaliveTimeoutMs,
  };
}

/** The part of the settings that says with which certificates ADS is served. */
export function serverTlsFiles(s: Settings): ServerTlsFiles {
  return { certFile: s.grpcTlsCert, keyFile: s.grpcTlsKey, clientCaFile: s.grpcClientCacert };
}

/** The part of the settings that says what is traced. */
export function tracingOptions(s: Settings): TracingOptions {
  return {
    enabled: s.tracingEnabled,
    protocol: s.tracingExporterProtocol,
    serviceName: s.tracingServiceName,
    samplingRate: s.tracingSamplingRate,
  };
}

/** The part of the settings that says how the cluster is reached. */
export function kubeConfigOptions({ kubeconfig, kubernetesServiceHost }: Settings): KubeConfigOptions {
  return { kubeconfig, kubernetesServiceHost };
}

/** The part of the settings that says which Secrets certificates are kept in. */
export function certificateOptions(s: Settings, namespace: string): SecretCertificatesOptions {
  const own = { namespace, name: `${s.certificateSecret}-client` };
  const others = s.clientSecrets.map((path) => {
    const [of = '', name = ''] = path.split('/');
    return { namespace: of, name };
  });
  return {
    namespace,
    name: s.certificateSecret,
    serverNames: s.serverNames,
    clientSecrets: [own, ...others],
  };
}
