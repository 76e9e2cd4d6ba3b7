import { HttpServer, nameListenSettings } from '@tollgate/kit/http-server';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Steps } from '@tollgate/kit/time';
import { watchTlsFiles } from '@tollgate/kit/tls';
import type { Preview } from '../catalog/preview.ts';
import type { ConfigObject } from '../catalog/source.ts';
import type { SecretCertificates } from '../certificates/certificates.ts';
import { type Settings, settingsSpec } from '../config/settings.ts';
import type { Context } from '../context.ts';
import type { ApiClient } from '../kube/client.ts';
import type { Leadership } from '../kube/lease.ts';
import { accessPolicies } from '../kube/resources.ts';
import { countReloads } from '../metrics.ts';
import { CaBundle } from './ca-bundle.ts';
import { AdmissionServer } from './server.ts';

interface Previewing {
  preview(object: ConfigObject): Steps<Preview>;
}

interface AdmissionParts {
  /** Undefined without a cluster. */
  readonly api?: ApiClient;
  /** Undefined when the certificate of the ADS server is a file. */
  readonly certificates?: SecretCertificates | undefined;
  readonly leadership?: Leadership | undefined;
  readonly pipeline: Previewing;
  /** Undefined when access policies are not read. */
  readonly policyPipeline: Previewing | undefined;
  /** Receives the port in use. */
  readonly ports: { admission: number };
}

/** Connections: a few API servers, with one per request in flight. */
const maxAdmissionConnections = 128;

/** The components of the webhook; empty when it is off. */
export async function createAdmission(
  context: Context,
  settings: Settings,
  { api, certificates, leadership, pipeline, policyPipeline, ports }: AdmissionParts,
): Promise<readonly LifecycleComponent[]> {
  if (!settings.admissionEnabled || api === undefined) return [];
  const files = certificates === undefined ? await watchServerCertificate(context, settings) : undefined;
  const tls = certificates ?? files;
  if (tls === undefined) return [];
  const preview = (object: ConfigObject): Steps<Preview> => {
    const isPolicy = Reflect.get(Object(object.manifest), 'kind') === accessPolicies.kind;
    return isPolicy ? (policyPipeline?.preview(object) ?? acceptUnread()) : pipeline.preview(object);
  };
  const { admissionHost: host, admissionPort: port, admissionConfiguration: name } = settings;
  const server = new HttpServer(
    new AdmissionServer(context, { tls, preview }),
    { host, port },
    { maxConnections: maxAdmissionConnections },
  );
  // Another issuer registers its authority itself.
  const bundle = certificates && new CaBundle(context, { api, name, tls: certificates, leadership });
  return [
    {
      name: 'admission webhook',
      start: async () => {
        const { admissionHost, admissionPort } = settingsSpec;
        const names = { host: admissionHost.env, port: admissionPort.env };
        ports.admission = await nameListenSettings(server.start(), names);
      },
      stop: async ({ signal }) => {
        await server.stop(signal);
        files?.close();
      },
    },
    ...(bundle === undefined
      ? []
      : [{ name: 'admission registration', start: () => bundle.start(), stop: () => bundle.close() }]),
  ];
}

/** Another server reads the object, or none. */
// biome-ignore lint/correctness/useYield: a preview without steps
function* acceptUnread(): Steps<Preview> {
  return { problems: [], warnings: [] };
}

/** The files of the ADS server, without the authorities of its clients. */
function watchServerCertificate(
  { logger, metrics, nowMs }: Context,
  { grpcTlsCert: certFile, grpcTlsKey: keyFile }: Settings,
) {
  const onAttempt = countReloads(metrics, 'tls');
  return watchTlsFiles({ certFile, keyFile, caFile: '' }, { logger, onAttempt, nowMs });
}
