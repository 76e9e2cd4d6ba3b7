import t, { type Test } from 'tap';
import { ErrorCode, Flag, FrameType, frame } from '../src/frames.ts';
import { GrpcServer } from '../src/server.ts';
import { headersFrame, RawClient } from './support/raw-client.ts';

const echo = '/test.Echo/Call';

async function connect(t: Test) {
  const server = new GrpcServer({ methods: { unary: { [echo]: (message) => message } } });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.drain(AbortSignal.abort()));
  const raw = new RawClient(port);
  t.teardown(() => raw.socket.destroy());
  raw.open();
  return { server, raw };
}

const selfDependent = Buffer.from([0, 0, 0, 1, 16]);

t.test('a malformed PRIORITY ends its stream, which gets no reply', async (t) => {
  for (const [payload, code] of [
    [selfDependent, ErrorCode.PROTOCOL_ERROR],
    [Buffer.alloc(4), ErrorCode.FRAME_SIZE_ERROR],
  ] as const) {
    const { server, raw } = await connect(t);
    raw.send(headersFrame(1), frame(FrameType.PRIORITY, 0, 1, payload));
    const reset = await raw.receive(({ type }) => type === FrameType.RST_STREAM);
    t.equal(reset?.payload.readUInt32BE(), code);
    t.equal(server.callCount, 0);
    raw.send(frame(FrameType.DATA, Flag.END_STREAM, 1, Buffer.alloc(5)));
    raw.call(3, echo);
    await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 3);
    t.notOk(raw.frames.some(({ type, streamId }) => type === FrameType.HEADERS && streamId === 1));
  }
});

t.test('a malformed PRIORITY of an idle stream ends the connection', async (t) => {
  const { raw } = await connect(t);
  raw.send(frame(FrameType.PRIORITY, 0, 1, selfDependent));
  t.equal(await raw.goaway(), ErrorCode.PROTOCOL_ERROR);
});
