import { compilePolicy } from '@tollgate/policies/compile/compile';
import { readPolicy } from '@tollgate/policies/read/read-policy';
import t from 'tap';
import { toMatchJson } from '../../src/gateway-api/matches.ts';

const toMatch = (...args: Parameters<typeof toMatchJson>): unknown => JSON.parse(toMatchJson(...args));

t.test('a match of an HTTPRoute keeps its path, method, headers and query parameters', (t) => {
  const named = { type: 'Exact', name: 'version', value: '2' };
  const match = {
    path: { type: 'Exact', value: '/orders' },
    method: 'GET',
    headers: [named, { name: 'x', value: 'y' }],
    queryParams: [{ ...named, type: 'RegularExpression' }],
  };
  t.same(toMatch('HTTPRoute', match), {
    path: match.path,
    methods: ['GET'],
    headers: [named, { type: 'Exact', name: 'x', value: 'y' }],
    queryParams: [{ ...named, type: 'RegularExpression' }],
  });
  t.same(toMatch('HTTPRoute', {}), { path: { type: 'PathPrefix', value: '/' } });
  t.end();
});

t.test('a method of a GRPCRoute is a path', (t) => {
  const pathOf = (method?: object) => Object(toMatch('GRPCRoute', { method })).path;
  t.same(pathOf({ service: 'a.B', method: 'C' }), { type: 'Exact', value: '/a.B/C' });
  t.same(pathOf({ service: 'a.B' }), { type: 'PathPrefix', value: '/a.B' });
  t.same(pathOf({ method: 'Get_C' }), { type: 'RegularExpression', value: '/[^/]+/Get_C' });
  t.same(pathOf({ type: 'RegularExpression', service: 'a|b' }), {
    type: 'RegularExpression',
    value: '/(?:a|b)/[^/]+',
  });
  t.same(pathOf(), undefined);
  t.end();
});

t.test('every match can be compiled as a match of a policy', (t) => {
  const methods = [
    { service: 'a.B', method: 'C' },
    { method: 'C.+' },
    { type: 'RegularExpression', method: 'C' },
  ];
  const matches = [
    ...methods.map((method) => toMatch('GRPCRoute', { method })),
    toMatch('HTTPRoute', { method: 'GET', headers: [{ name: 'a', value: 'b' }] }),
  ];
  const read = readPolicy(
    {
      ...{ apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy', metadata: { name: 'a' } },
      spec: { hosts: ['a.test'], rules: matches.map((match) => ({ matches: [match] })) },
    },
    'test',
  );
  t.same(read.ok ? [] : read.problems, []);
  t.ok(read.ok && compilePolicy(read.resource).ok);
  t.end();
});
