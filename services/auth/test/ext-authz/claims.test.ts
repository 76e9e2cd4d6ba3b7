import { attributeText } from '@tollgate/policies/decide/caller';
import t from 'tap';
import { claimText } from '../../src/ext-authz/claim-text.ts';
import { callerIdentity } from '../helpers/caller.ts';

t.test('a value is text, or left out as a whole', (t) => {
  t.equal(claimText('pro'), 'pro');
  t.equal(claimText(3), '3');
  t.equal(claimText(false), 'false');
  t.equal(claimText(['read', 'write', 2]), 'read write 2');
  t.equal(claimText('é'), 'é', 'encoded in the header');
  const unusable = [undefined, null, '', {}, [], [[]], [{}], 'a\nb', 'a\0', '\u0085', 'x'.repeat(256)];
  for (const value of unusable) t.equal(claimText(value), undefined, JSON.stringify(value));
  for (const value of ['\ud800', ['a', '\udfff'], 2 ** 53, -(2 ** 53), [2 ** 53], Number.POSITIVE_INFINITY])
    t.equal(claimText(value), undefined, 'another id could have the same text');
  t.equal(claimText(2 ** 53 - 1), '9007199254740991');
  t.equal(claimText('x'.repeat(255))?.length, 255);
  t.equal(claimText('x'.repeat(1_024), 1_024)?.length, 1_024);
  t.end();
});

t.test('an attribute that nothing sets is empty, whatever its name', (t) => {
  t.equal(attributeText(callerIdentity(), 'constructor'), '');
  t.end();
});
