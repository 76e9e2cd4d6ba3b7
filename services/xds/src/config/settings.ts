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
import type { AdsListenOptions } from '../ads/server.ts';
import type { SecretCertificatesOptions } from '../certificates/certificates.ts';
import { connectionSettings, serverSettings, tlsSettings, tracingSettings } from './server-settings.ts';
import { kubernetesSettings, sourceSettings, statusSettings } from './source-settings.ts';

/** All settings, in the order of docs/settings-xds.md. */
export const settingsSpec = defineSettings({
  ...sourceSettings,
  ...kubernetesSettings,
  ...statusSettings,
  ...serverSettings,
  ...connectionSettings,
  ...tlsSettings,
  ...tracingSettings,
});

export type Settings = SettingsOf<typeof settingsSpec>;

type Check = SettingsCheck<typeof settingsSpec>;

/** Resolves `auto`. */
export function getSourceName({
  source,
  kubernetesServiceHost,
}: Pick<Settings, 'source' | 'kubernetesServiceHost'>): 'kubernetes' | 'folder' {
  if (source !== 'auto') return source;
  return kubernetesServiceHost === '' ? 'folder' : 'kubernetes';
}

const folderIsRequired: Check = (s, { nameOf }) =>
  getSourceName(s) === 'folder' && s.folder === ''
    ? {
        variable: nameOf('folder'),
        expected: `a directory of manifests, because ${nameOf('source')} is ${s.source === 'auto' ? 'auto and this is not a pod' : 'folder'}; for a cluster set ${nameOf('source')}=kubernetes`,
      }
    : undefined;

function hasTls({ grpcTlsCert, grpcOwnCa }: Pick<Settings, 'grpcTlsCert' | 'grpcOwnCa'>): boolean {
  return grpcTlsCert !== '' || grpcOwnCa;
}

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/;

const plaintextIsExplicit: Check = (s, { nameOf }) =>
  s.grpcHost === '' || loopback.test(s.grpcHost) || hasTls(s) || s.grpcPlaintext
    ? undefined
    : {
        variable: nameOf('grpcHost'),
        value: s.grpcHost,
        expected: `127.0.0.1, because TLS is off: set ${nameOf('grpcTlsCert')}, ${nameOf('grpcTlsKey')} and ${nameOf('grpcClientCacert')}, or ${nameOf('grpcOwnCa')}=true in a cluster, or ${nameOf('grpcPlaintext')}=true in a trusted network`,
      };

const tlsIsExclusive: Check = (s, { nameOf }) => {
  const chosen = [
    ...(s.grpcTlsCert === '' ? [] : [nameOf('grpcTlsCert')]),
    ...(s.grpcOwnCa ? [nameOf('grpcOwnCa')] : []),
    ...(s.grpcPlaintext ? [nameOf('grpcPlaintext')] : []),
  ];
  return chosen.length < 2
    ? undefined
    : { variable: chosen.join(' and '), expected: 'only one of them: they are mutually exclusive' };
};

const ownCaNeedsCluster: Check = (s, { nameOf }) =>
  s.grpcOwnCa && getSourceName(s) !== 'kubernetes'
    ? {
        variable: nameOf('grpcOwnCa'),
        expected: `false with ${nameOf('source')}=folder: certificates are stored in Secrets of a cluster`,
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
        expected: 'a PEM file: certificate and key are both required',
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

/** Otherwise two replicas could both consider themselves the holder. */
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

/** Reports all problems at once. */
export function readSettings(env: Environment): ParsedSettings<typeof settingsSpec> {
  return parseSettings(settingsSpec, env, {
    checks: [
      folderIsRequired,
      plaintextIsExplicit,
      tlsIsExclusive,
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

/** The network is served only with TLS, or with XDS_GRPC_PLAINTEXT. */
export function getGrpcHost(s: Settings): string {
  return s.grpcHost || (hasTls(s) || s.grpcPlaintext ? '0.0.0.0' : '127.0.0.1');
}

export function toAdsListenOptions(s: Settings): AdsListenOptions {
  return {
    address: hostAndPort(getGrpcHost(s), s.grpcPort),
    maxStreamsPerPeer: s.maxStreamsPerPeer,
    maxConnectionAgeMs: s.maxConnectionAgeMs,
    maxConnectionAgeGraceMs: s.maxConnectionAgeGraceMs,
    keepaliveTimeMs: s.keepaliveTimeMs,
    keepaliveTimeoutMs: s.keepaliveTimeoutMs,
  };
}

export function toTlsFiles(s: Settings): ServerTlsFiles {
  return { certFile: s.grpcTlsCert, keyFile: s.grpcTlsKey, clientCaFile: s.grpcClientCacert };
}

export function toTracingOptions(s: Settings): TracingOptions {
  return {
    enabled: s.tracingEnabled,
    protocol: s.tracingExporterProtocol,
    serviceName: s.tracingServiceName,
    samplingRate: s.tracingSamplingRate,
  };
}

export function toCertificateOptions(
  s: Settings,
  namespace: string,
): Omit<SecretCertificatesOptions, 'api' | 'onAttempt'> {
  const own = { namespace, name: `${s.certificateSecret}-client` };
  const others = s.clientSecrets.map((path) => {
    const [other = '', name = ''] = path.split('/');
    return { namespace: other, name };
  });
  return {
    namespace,
    name: s.certificateSecret,
    serverNames: s.serverNames,
    clientSecrets: [own, ...others],
  };
}
