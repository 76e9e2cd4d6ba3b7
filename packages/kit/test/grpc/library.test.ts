import { Client, credentials } from '@grpc/grpc-js';
import t from 'tap';
import { trimDetails } from '../../src/grpc/library.ts';

t.test('error details of an unreachable server end with the reason', async (t) => {
  const client = new Client('127.0.0.1:1', credentials.createInsecure());
  t.teardown(() => client.close());
  const message = await new Promise<string>((resolve) => {
    const bytes = (value: Buffer): Buffer => value;
    client.makeUnaryRequest('/a/b', bytes, bytes, Buffer.alloc(0), (error) => resolve(error?.message ?? ''));
  });
  t.match(trimDetails(message), /ECONNREFUSED 127\.0\.0\.1:1\.?$/, message);
});

t.test('a note with content is kept', async (t) => {
  t.equal(trimDetails('down. Resolution note: no such host'), 'down. Resolution note: no such host');
  t.equal(trimDetails('down. Resolution note: '), 'down.');
});
