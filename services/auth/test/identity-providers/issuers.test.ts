// Whose ID tokens are accepted by providers with several issuers.
import t from 'tap';
import { apple } from '../../src/identity-providers/vendors/apple.ts';
import { azure } from '../../src/identity-providers/vendors/azure.ts';
import { facebook } from '../../src/identity-providers/vendors/facebook.ts';

const tenant = '72f988bf-86f1-41af-91ab-2d7cd011db47';
const otherTenant = '11111111-2222-3333-4444-555555555555';
const personal = '9188040d-6c67-4c5b-b112-36a304b66dad';
const microsoft = 'https://login.microsoftonline.com';
const issuerOf = (id: string) => `${microsoft}/${id}/v2.0`;
const accepted = (tid: string, baseUrl = '') => azure.idToken?.issuers({ tid }, baseUrl);

for (const [what, baseUrl, tid, issuers] of [
  ['any tenant by default', '', tenant, [issuerOf(tenant)]],
  ['any tenant of common', `${microsoft}/common`, personal, [issuerOf(personal)]],
  ['its own tenant', `${microsoft}/${tenant}`, tenant, [issuerOf(tenant)]],
  ['no other tenant', `${microsoft}/${tenant}`, otherTenant, []],
  ['work accounts of organizations', `${microsoft}/organizations`, tenant, [issuerOf(tenant)]],
  ['no personal accounts of organizations', `${microsoft}/organizations`, personal, []],
  ['personal accounts of consumers', `${microsoft}/consumers/`, personal, [issuerOf(personal)]],
  ['no work accounts of consumers', `${microsoft}/consumers`, tenant, []],
  ['no tenant that is not an id', '', '../attacker', []],
  [
    'external tenants at their own hosts',
    `https://shop.ciamlogin.com/${tenant}`,
    tenant,
    [`https://shop.ciamlogin.com/${tenant}/v2.0`, `https://${tenant}.ciamlogin.com/${tenant}/v2.0`],
  ],
] as const)
  t.test(`azure accepts ${what}`, (t) => {
    t.same(accepted(tid, baseUrl), issuers);
    t.end();
  });

t.test('apple and facebook have two issuers', (t) => {
  t.same(apple.idToken?.issuers({}, ''), ['https://appleid.apple.com', 'https://account.apple.com']);
  t.same(facebook.idTokenGrant?.issuers({}, ''), [
    'https://www.facebook.com',
    'https://limited.facebook.com',
  ]);
  t.end();
});
