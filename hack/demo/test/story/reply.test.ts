import t from 'tap';
import { counted, limited, readReply, stockReader } from '../../story/reply.ts';

const names = new Map([['u1', 'ada']]);
const ada = { caller: { userId: 'u1', plan: 'free', role: 'authenticated' } };
const rateLimit = { 'ratelimit-limit': '5', 'ratelimit-remaining': '4' };

function reply(status: number, body: unknown, headers: Record<string, string> = {}) {
  return readReply(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers }));
}

t.test('an answer of the shop tells who it is for and what is left', async (t) => {
  t.equal(counted(await reply(200, ada, rateLimit), names), '200 ada (free), 4 of 5 left');
  t.equal(counted(await reply(200, ada), names), '200 ada (free), not counted');
  t.equal(counted(await reply(200, { caller: {} }), names), '200 stranger, not counted');
  t.equal(counted(await reply(200, ada), new Map()), '200 u1 (free), not counted');
});

t.test('where others may have been counted meanwhile, only the limit is told', async (t) => {
  t.equal(limited(await reply(200, ada, rateLimit), names), '200 ada (free), limit 5');
  t.equal(limited(await reply(200, ada), names), '200 ada (free), limit none');
});

t.test('a refusal tells its code, or the rule that it comes from', async (t) => {
  t.equal(counted(await reply(401, { error_code: 'bad_jwt' }), names), '401 bad_jwt');
  t.equal(limited(await reply(502, { error: 'no stock' }), names), '502 no stock');
  t.equal(counted(await reply(503, 'no healthy upstream'), names), '503 without a reason');
  const headers = { 'x-limited-by': 'tollgate', 'x-ratelimit-limit': '5, 5;w=3600;name="free-plan"' };
  t.equal(counted(await reply(429, '', headers), names), '429 by free-plan');
  t.equal(
    counted(await reply(429, '', { 'x-limited-by': 'tollgate' }), names),
    '429 by a limit without a name',
  );
});

t.test('the catalogue tells in whose name the stock was read', async (t) => {
  t.equal(
    stockReader(await reply(200, { stock: { caller: { role: 'service' } } })),
    '200 stock read as service',
  );
  t.equal(stockReader(await reply(200, { stock: { caller: {} } })), '200 stock read as nobody');
  t.equal(stockReader(await reply(502, { error: 'no stock' })), '502 no stock');
});
