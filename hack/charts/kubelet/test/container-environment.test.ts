import t from 'tap';
import { containerEnvironment } from '../container-environment.ts';
import type { ContainerSpec } from '../pod-spec.ts';
import { podSurroundings } from '../pod-surroundings.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

const surroundings = podSurroundings(
  [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'own' }, data: { A: base64('a'), B: base64('b') } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'own' }, data: { B: 'config', C: 'c' } },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'empty' } },
  ],
  { name: 'pod-1', namespace: 'shop', token: '' },
);

const environmentOf = (container: Omit<ContainerSpec, 'name' | 'image'>) =>
  containerEnvironment({ name: 'c', image: 'i', ...container }, surroundings);

t.test('a later source comes before an earlier one, and `env` before all', async (t) => {
  const variables = environmentOf({
    envFrom: [{ secretRef: { name: 'own' } }, { configMapRef: { name: 'own' } }],
    env: [{ name: 'C', value: 'own' }, { name: 'EMPTY' }],
  });
  t.strictSame(variables, { A: 'a', B: 'config', C: 'own', EMPTY: '' });
});

t.test('values name variables that are there already', async (t) => {
  const { X } = environmentOf({
    envFrom: [{ secretRef: { name: 'own' } }],
    env: [
      { name: 'X', value: '$(A)-$(LATER)-$$(A)-$(A' },
      { name: 'LATER', value: '1' },
    ],
  });
  t.equal(X, 'a-$(LATER)-$(A)-$(A');
});

t.test('values come from fields of the Pod and keys of Secrets and ConfigMaps', async (t) => {
  const variables = environmentOf({
    env: [
      { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'SECRET', valueFrom: { secretKeyRef: { name: 'own', key: 'A' } } },
      { name: 'CONFIG', valueFrom: { configMapKeyRef: { name: 'own', key: 'C' } } },
      { name: 'MISSING', valueFrom: { secretKeyRef: { name: 'own', key: 'Z', optional: true } } },
    ],
  });
  t.strictSame(variables, { NAME: 'pod-1', SECRET: 'a', CONFIG: 'c' });
});

t.test('what is missing keeps a Pod from starting, unless it is optional', async (t) => {
  const secretKeyRef = { name: 'own', key: 'Z' };
  t.throws(
    () => environmentOf({ envFrom: [{ secretRef: { name: 'none' } }] }),
    /pod-1 needs the Secret none/,
  );
  t.throws(() => environmentOf({ env: [{ name: 'X', valueFrom: { secretKeyRef } }] }), /key Z of own/);
  t.throws(
    () => environmentOf({ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }] }),
    /status\.podIP/,
  );
  t.strictSame(environmentOf({ envFrom: [{ secretRef: { name: 'none', optional: true } }] }), {});
  t.strictSame(environmentOf({ envFrom: [{ secretRef: { name: 'empty' } }] }), {});
});
