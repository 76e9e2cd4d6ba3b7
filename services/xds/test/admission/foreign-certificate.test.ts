import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { serviceAccount } from '../support/admission.ts';
import { deployFile, prepareCluster } from '../support/cluster.ts';
import { startApp } from '../support/start-app.ts';

const limited = { key: 'user', rateLimit: { unit: 'Minute', requestsPerUnit: 10 } };

/** Valid for the schema, and refused by the loader. */
const twice = JSON.stringify({
  apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
  kind: 'RateLimitConfig',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { domain: 'shop', descriptors: [limited, limited] },
});

/** As `services/xds/deploy` has it, with an authority and an address of this machine. */
function makeConfiguration(port: number, authority: string): string {
  const [, configuration = ''] = deployFile('admission-webhook.yaml').split('\n---\n');
  const clientConfig = {
    url: `https://localhost:${port}/validate`,
    caBundle: Buffer.from(authority).toString('base64'),
  };
  return configuration.replace(
    /clientConfig:[\s\S]*?path: \/validate/,
    `clientConfig: ${JSON.stringify(clientConfig)}`,
  );
}

kubeSuite(
  t,
  'the admission webhook with a certificate of another authority',
  async (t, kube) => {
    const certificates = makeCertificates();
    t.teardown(certificates.remove);
    const issue = () => certificates.issue({ name: 'webhook', subjectAltNames: ['DNS:localhost'] });
    const { certFile, keyFile } = issue();
    await prepareCluster(kube, ['tollgate', 'shop']);
    await kube.apply(deployFile('rbac.yaml'));
    const app = await startApp(t, {
      XDS_SOURCE: 'kubernetes',
      KUBECONFIG: kube.kubeconfigFor(serviceAccount),
      POD_NAMESPACE: 'tollgate',
      XDS_GRPC_TLS_CERT: certFile,
      XDS_GRPC_TLS_KEY: keyFile,
      XDS_ADMISSION_ENABLED: 'true',
      XDS_ADMISSION_HOST: '127.0.0.1',
      XDS_ADMISSION_PORT: '0',
    });
    await kube.apply(makeConfiguration(app.ports.admission, certificates.ca.cert));
    const apply = async () =>
      (await kube.kubectl(['apply', '-f', '-', '--dry-run=server'], { input: twice })).stderr;
    const readConfiguration = async () =>
      (await kube.kubectl(['get', 'validatingwebhookconfiguration', 'tollgate-xds', '-o', 'yaml'])).stdout;
    const before = await readConfiguration();
    const readMetrics = () =>
      fetch(`http://127.0.0.1:${app.ports.admin}/metrics`).then((response) => response.text());

    await t.test('reviews, and leaves its registration alone', async (t) => {
      await awaitUntil(async () => (await apply()).includes('denied the request'), { what: 'a review' });
      t.match(await apply(), /spec\.descriptors\[1\]\.key: duplicate descriptor composite key/);
      t.notMatch(await readMetrics(), /tollgate_xds_admission_registered/);
      t.equal(await readConfiguration(), before);
      t.strictSame(
        app.lines.filter(({ level }) => level === 'warning' || level === 'error'),
        [],
      );
    });

    await t.test('reviews with the next certificate as soon as it is in the files', async (t) => {
      const { cert } = issue();
      const serial = new X509Certificate(cert).serialNumber;
      const isServed = async () => (await readServedSerial(app.ports.admission)) === serial;
      await awaitUntil(isServed, { what: 'the next certificate' });
      t.match(await apply(), /denied the request/);
    });
  },
  { users: [{ name: serviceAccount }] },
);

/** The serial number of the certificate that a port serves. */
async function readServedSerial(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}
