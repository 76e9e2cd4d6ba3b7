import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import t from 'tap';
import { rateLimitConfigType } from '../../src/domain/resource-type.ts';

t.test('the type is that of the message', async (t) => {
  t.equal(rateLimitConfigType, `type.googleapis.com/${RateLimitConfigSchema.typeName}`);
});
