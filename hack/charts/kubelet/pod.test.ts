import t from 'tap';
import { containerEnvironment, containersAreImpossible } from './container.ts';
import { runPod } from './pod.ts';
import { type ContainerSpec, type PodSpec, podSurroundings } from './pod-spec.ts';
import { checkoutImage } from './service-image.ts';

const skip = containersAreImpossible();

const surroundings = podSurroundings(
  [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'rules' },
      data: { 'a.yaml': 'a', 'b.yaml': 'b' },
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kube-root-ca.crt' }, data: { 'ca.crt': 'ca' } },
  ],
  { name: 'pod-1', namespace: 'shop', token: 'the token' },
);
const node = {
  findImage: () => checkoutImage('xds'),
  hosts: { 'tg-xds': '127.0.0.9', 'tg-xds-headless': ['127.0.0.8', '127.0.0.9'] },
  environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1' },
};

/** Runs a script of Node.js in a Pod and parses its output. */
async function inPod(script: string, spec: Partial<PodSpec> = {}): Promise<unknown> {
  const helpers = `
    const fs = await import('node:fs');
    const attempt = (action) => { try { return action() ?? 'done'; } catch (error) { return error.code; } };`;
  const args = ['--input-type=module', '--eval', `${helpers} console.log(JSON.stringify(${script}))`];
  const container = {
    name: 'test',
    image: 'any',
    args,
    env: [{ name: 'OWN', value: 'x y' }],
    volumeMounts: [
      { name: 'tmp', mountPath: '/tmp' },
      { name: 'rules', mountPath: '/etc/tollgate/rules', readOnly: true },
    ],
  };
  const output = await runPod({
    spec: {
      containers: [container],
      volumes: [
        { name: 'tmp', emptyDir: {} },
        { name: 'rules', configMap: { name: 'rules', items: [{ key: 'a.yaml', path: 'first.yaml' }] } },
      ],
      automountServiceAccountToken: false,
      securityContext: { runAsUser: 65532, fsGroup: 65532 },
      ...spec,
    },
    node,
    surroundings,
  });
  return JSON.parse(output);
}

t.test(
  'a container has the variables of its image, its node and its template, and no others',
  { skip },
  async (t) => {
    t.strictSame(await inPod('process.env'), {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      NODE_ENV: 'production',
      HOSTNAME: 'pod-1',
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      OWN: 'x y',
    });
  },
);

t.test('it writes only to empty directories, and sees no files of the machine', { skip }, async (t) => {
  const write = (path: string) => `attempt(() => fs.writeFileSync('${path}', ''))`;
  t.strictSame(await inPod(`[${['/x', '/app/x', '/etc/tollgate/rules/x', '/tmp/x'].map(write).join()}]`), [
    'EROFS',
    'EROFS',
    'EROFS',
    'done',
  ]);
  t.strictSame(await inPod(`fs.readdirSync('/etc').toSorted()`), [
    ...['host.conf', 'hosts', 'nsswitch.conf', 'ssl', 'tollgate'],
  ]);
});

t.test('it runs as the user of the template', { skip: skip || process.getuid?.() !== 0 }, async (t) => {
  t.strictSame(await inPod('[process.getuid(), process.getgid(), process.getgroups()]'), [
    65532,
    65532,
    [65532],
  ]);
});

t.test('names of Services resolve without a name server', { skip }, async (t) => {
  const lookup = (name: string) =>
    `await (await import('node:dns/promises')).lookup('${name}').then(({ address }) => address, ({ code }) => code)`;
  t.strictSame(await inPod(`[${lookup('tg-xds')}, ${lookup('example.com')}]`), ['127.0.0.9', 'ENOTFOUND']);
  const all = `(await import('node:dns/promises')).lookup('tg-xds-headless', { all: true })`;
  t.match(await inPod(`await ${all}`), [{ address: '127.0.0.8' }, { address: '127.0.0.9' }]);
});

t.test('only Pods that mount a token have one', { skip }, async (t) => {
  const folder = '/var/run/secrets/kubernetes.io/serviceaccount';
  const read = ['token', 'ca.crt', 'namespace'].map(
    (name) => `attempt(() => fs.readFileSync('${folder}/${name}', 'utf8'))`,
  );
  const script = `[${read.join()}]`;
  t.strictSame(await inPod(script), ['ENOENT', 'ENOENT', 'ENOENT']);
  t.strictSame(await inPod(script, { automountServiceAccountToken: true }), ['the token', 'ca', 'shop']);
});

const base64 = (text: string) => Buffer.from(text).toString('base64');

const environmentSurroundings = podSurroundings(
  [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'own' }, data: { A: base64('a'), B: base64('b') } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'own' }, data: { B: 'config', C: 'c' } },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'empty' } },
  ],
  { name: 'pod-1', namespace: 'shop', token: '' },
);

const toEnvironment = (container: Omit<ContainerSpec, 'name' | 'image'>) =>
  containerEnvironment({ name: 'c', image: 'i', ...container }, environmentSurroundings);

t.test('a missing object is an error unless it is optional', async (t) => {
  const secretKeyRef = { name: 'own', key: 'Z' };
  t.throws(
    () => toEnvironment({ envFrom: [{ secretRef: { name: 'none' } }] }),
    /pod-1 needs the Secret none/,
  );
  t.throws(() => toEnvironment({ env: [{ name: 'X', valueFrom: { secretKeyRef } }] }), /key Z of own/);
  t.throws(
    () => toEnvironment({ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }] }),
    /status\.podIP/,
  );
  t.strictSame(toEnvironment({ envFrom: [{ secretRef: { name: 'none', optional: true } }] }), {});
  t.strictSame(toEnvironment({ envFrom: [{ secretRef: { name: 'empty' } }] }), {});
});
