// Loaded into a service before its code: replaces Date by one whose offset is in a file, which is
// read again at SIGUSR2.
import { readFileSync } from 'node:fs';

const RealDate = Date;
const readOffset = (): number => Number(readFileSync(process.env.CLOCK_OFFSET_FILE ?? '', 'utf8'));
let offsetMs = readOffset();

process.on('SIGUSR2', () => {
  offsetMs = readOffset();
});

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [RealDate.now() + offsetMs] : args, newTarget),
  get: (target, key, receiver) =>
    key === 'now' ? () => RealDate.now() + offsetMs : Reflect.get(target, key, receiver),
});
