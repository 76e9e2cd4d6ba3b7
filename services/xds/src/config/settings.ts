import { isAbsolute, relative, resolve, sep } from 'node:path';
import type { ServerTlsFiles } from '@tollgate/kit/grpc/credentials';
import {
  defineSettings,
  type Environment,
  type ParsedSettings,
  parseSettings,
  type SettingsCheck,
  type SettingValues,
} from '@tollgate/kit/settings';
import type { TracingOptions } from '@tollgate/kit/telemetry';
import { hostAndPort } from '@tollgate/kit/text';
import type { AdsListenOptions } from '../ads/server.ts';
import type { SecretCertificatesOptions } from '../certificates/certificates.ts';
import { parseHostsByNamespace } from '../policies/allowed-hosts.ts';
import {
  admissionSettings,
  connectionSettings,
  serverSettings,
  tlsSettings,
  tracingSettings,
} from './server-settings.ts';
import { kubernetesSettings, sourceSettings, statusSettings } from './source-settings.ts';

/** All settings, in the order of docs/settings-xds.md. */
export const settingsSpec = defineSettings({
  ...sourceSettings,
  ...kubernetesSettings,
  ...statusSettings,
  ...serverSettings,
  ...connectionSettings,
  ...tlsSettings,
  ...admissionSettings,
  ...tracingSettings,
});

export type Settings = SettingValues<typeof settingsSpec>;

type Check = SettingsCheck<typeof settingsSpec>;

/** Where objects may come from. */
export type SourceName = Exclude<Settings['source'], 'auto'>;

/** Resolves `auto`. */
export function getSourceName({
  source,
  kubernetesServiceHost,
}: Pick<Settings, 'source' | 'kubernetesServiceHost'>): SourceName {
  if (source !== 'auto') return source;
  return kubernetesServiceHost === '' ? 'folder' : 'kubernetes';
}

const folderIsRequired: Check = (s, { problem, variableName }) =>
  getSourceName(s) === 'folder' && s.folder === ''
    ? problem(
        'folder',
        `a directory of manifests, because ${variableName('source')} is ${s.source === 'auto' ? 'auto and this is not a pod' : 'folder'}; for a cluster set ${variableName('source')}=kubernetes`,
      )
    : undefined;

const dataFolderNeedsFolder: Check = (s, { problem, variableName }) =>
  s.dataFolder !== '' && getSourceName(s) !== 'folder'
    ? problem(
        'dataFolder',
        `no value with ${variableName('source')}=kubernetes: last valid versions are in the objects`,
      )
    : undefined;

const dataFolderIsSeparate: Check = (s, { problem, variableName }) =>
  s.dataFolder !== '' && s.folder !== '' && isInside(s.dataFolder, s.folder)
    ? problem('dataFolder', `a directory outside of ${variableName('folder')}, whose files are manifests`)
    : undefined;

function isInside(path: string, folder: string): boolean {
  const way = relative(resolve(folder), resolve(path));
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way));
}

function hasTls({ grpcTlsCert, grpcOwnCa }: Pick<Settings, 'grpcTlsCert' | 'grpcOwnCa'>): boolean {
  return grpcTlsCert !== '' || grpcOwnCa;
}

/** Clients without a certificate of the authority do not get past the handshake. */
function hasMutualTls({ grpcClientCacert, grpcOwnCa }: Settings): boolean {
  return grpcClientCacert !== '' || grpcOwnCa;
}

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/;

const plaintextIsExplicit: Check = (s, { problem, variableName }) =>
  s.grpcHost === '' || loopback.test(s.grpcHost) || hasTls(s) || s.grpcPlaintext
    ? undefined
    : problem(
        'grpcHost',
        `127.0.0.1, because TLS is off: set ${variableName('grpcTlsCert')}, ${variableName('grpcTlsKey')} and ${variableName('grpcClientCacert')}, or ${variableName('grpcOwnCa')}=true in a cluster, or ${variableName('grpcPlaintext')}=true in a trusted network`,
      );

const keysPair: Check = (s, { problem, variableName }) =>
  (s.adminKeysUrl === '') === (s.adminKeysToken === '')
    ? undefined
    : problem(
        s.adminKeysUrl === '' ? 'adminKeysUrl' : 'adminKeysToken',
        `a value: ${variableName('adminKeysUrl')} and ${variableName('adminKeysToken')} belong together`,
      );

/** A person's access token administers the auth server, too. */
const keysNeedPrivacy: Check = (s, { problem, variableName }) =>
  s.adminKeysUrl === '' || s.adminPlaintext || loopback.test(s.adminHost)
    ? undefined
    : problem(
        'adminHost',
        `127.0.0.1, because ${variableName('adminKeysUrl')} is set and the port has no TLS: set ${variableName('adminPlaintext')}=true in a network that encrypts`,
      );

const tlsIsExclusive: Check = (s, { variableName }) => {
  const chosen = [
    ...(s.grpcTlsCert === '' ? [] : [variableName('grpcTlsCert')]),
    ...(s.grpcOwnCa ? [variableName('grpcOwnCa')] : []),
    ...(s.grpcPlaintext ? [variableName('grpcPlaintext')] : []),
  ];
  return chosen.length < 2
    ? undefined
    : { variable: chosen.join(' and '), expected: 'only one of them: they are mutually exclusive' };
};

const ownCaNeedsCluster: Check = (s, { problem, variableName }) =>
  s.grpcOwnCa && getSourceName(s) !== 'kubernetes'
    ? problem(
        'grpcOwnCa',
        `false with ${variableName('source')}=folder: certificates are stored in Secrets of a cluster`,
      )
    : undefined;

const ownCaNeedsNames: Check = (s, { problem, variableName }) =>
  s.grpcOwnCa && s.serverNames.length === 0
    ? problem(
        'serverNames',
        `DNS names such as tollgate-xds.tollgate.svc, because ${variableName('grpcOwnCa')} is true`,
      )
    : undefined;

const allowedHostsAreHosts: Check = (s, { problem }) => {
  const parsed = parseHostsByNamespace(s.allowedHosts);
  const expected = 'namespace=host, or a host of the namespace before, separated by commas';
  return parsed.ok ? undefined : { ...problem('allowedHosts', expected), value: parsed.invalid };
};

const clientSecretForm = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\/[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/;

const clientSecretsArePaths: Check = (s, { problem }) => {
  const wrong = s.clientSecrets.find((path) => !clientSecretForm.test(path));
  return wrong === undefined
    ? undefined
    : { ...problem('clientSecrets', 'namespace/name, separated by commas'), value: wrong };
};

const tlsPair: Check = (s, { problem }) =>
  (s.grpcTlsCert === '') === (s.grpcTlsKey === '')
    ? undefined
    : problem(
        s.grpcTlsCert === '' ? 'grpcTlsCert' : 'grpcTlsKey',
        'a PEM file: certificate and key are both required',
      );

const clientAuthorityNeedsTls: Check = (s, { problem, variableName }) =>
  s.grpcClientCacert !== '' && s.grpcTlsCert === ''
    ? problem('grpcTlsCert', `a PEM file, because ${variableName('grpcClientCacert')} is set`)
    : undefined;

const sanNeedsAuthority: Check = (s, { problem, variableName }) =>
  s.grpcClientSan.length > 0 && s.grpcClientCacert === ''
    ? problem('grpcClientCacert', `a PEM file, because ${variableName('grpcClientSan')} is set`)
    : undefined;

const admissionNeedsCertificate: Check = (s, { problem, variableName }) =>
  s.admissionEnabled && !s.grpcOwnCa && s.grpcTlsCert === ''
    ? problem(
        'admissionEnabled',
        `false, or a certificate of the ADS server, which is that of the webhook: ${variableName('grpcOwnCa')}=true or ${variableName('grpcTlsCert')}`,
      )
    : undefined;

/** Otherwise two replicas could both consider themselves the holder. */
const leaseTimes: Check = (s, { problem, variableName }) => {
  if (s.leaseRetryPeriodMs < s.leaseRenewDeadlineMs && s.leaseRenewDeadlineMs < s.leaseDurationMs)
    return undefined;
  return problem(
    'leaseRenewDeadlineMs',
    `more than ${variableName('leaseRetryPeriodMs')} and less than ${variableName('leaseDurationMs')}`,
  );
};

/** Reports all problems at once. */
export function readSettings(env: Environment): ParsedSettings<typeof settingsSpec> {
  return parseSettings(settingsSpec, env, {
    checks: [
      folderIsRequired,
      dataFolderNeedsFolder,
      dataFolderIsSeparate,
      plaintextIsExplicit,
      keysPair,
      keysNeedPrivacy,
      tlsIsExclusive,
      ownCaNeedsCluster,
      ownCaNeedsNames,
      clientSecretsArePaths,
      allowedHostsAreHosts,
      tlsPair,
      clientAuthorityNeedsTls,
      sanNeedsAuthority,
      admissionNeedsCertificate,
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
    maxStreamsPerPeer: hasMutualTls(s) ? s.maxStreamsPerVerifiedPeer : s.maxStreamsPerPeer,
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
