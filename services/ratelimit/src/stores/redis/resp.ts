/** A reply of Redis. Errors are values: one command of a pipeline may fail alone. */
export type RedisReply = number | string | null | RedisReplyError | readonly RedisReply[];

/** An error reply; the message is that of Redis, such as `READONLY You can't write …`. */
export class RedisReplyError extends Error {
  override readonly name = 'RedisReplyError';
}

/** Commands in the form of the protocol, written as one pipeline. */
export class Pipeline {
  text = '';
  commandCount = 0;

  get(key: string): void {
    this.text += `*2\r\n$3\r\nGET\r\n${bulk(key)}`;
    this.commandCount += 1;
  }

  incrBy(key: string, addend: number): void {
    const by = addend === 1 ? one : integer(addend);
    this.text += `*3\r\n$6\r\nINCRBY\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n${by}`;
    this.commandCount += 1;
  }

  expire(key: string, ttlSeconds: number): void {
    this.text += `*3\r\n$6\r\nEXPIRE\r\n${bulk(key)}${integer(ttlSeconds)}`;
    this.commandCount += 1;
  }

  /** Any other command. */
  command(...words: readonly string[]): void {
    this.begin(words.length);
    for (const word of words) this.word(word);
  }

  /** A command whose words follow. */
  begin(wordCount: number): void {
    this.text += `*${wordCount}\r\n`;
    this.commandCount += 1;
  }

  word(text: string): void {
    this.text += bulk(text);
  }

  integer(value: number): void {
    this.text += value === 1 ? one : integer(value);
  }
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

function integer(value: number): string {
  return bulk(String(value));
}

/** Most hits add 1: fewer strings are built with this constant. */
const one = integer(1);

/** Maximum length of a line and of a string. Counters and addresses are far shorter. */
const maxLineBytes = 64 * 1024;
const maxStringBytes = 1024 * 1024;

/** Maximum elements of an array: CLUSTER SLOTS has at most one range for each of 16,384 slots. */
const maxElements = 16_384;

/** CLUSTER SLOTS has four levels of arrays. */
const maxDepth = 8;

const cr = 13;
const lf = 10;
const minus = 45;
const zero = 48;
const colon = 58;

/** Longest number that is added up digit by digit without rounding. */
const maxExactDigits = 15;

const incomplete = Symbol('incomplete');

/**
 * Reads replies of protocol version 2 from chunks.
 *
 * @see https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
export class ReplyReader {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  /**
   * Calls `onReply` for each reply that is complete.
   *
   * @throws Error when the bytes are not of the protocol, or exceed a limit; the reader is unusable
   * after that.
   */
  read(chunk: Buffer, onReply: (reply: RedisReply) => void): void {
    this.#bytes =
      this.#at < this.#bytes.length ? Buffer.concat([this.#bytes.subarray(this.#at), chunk]) : chunk;
    this.#at = 0;
    while (this.#at < this.#bytes.length) {
      const start = this.#at;
      const reply = this.#bytes[start] === colon ? this.#readInteger() : this.#readReply(0);
      if (reply === incomplete) {
        this.#at = start;
        return;
      }
      onReply(reply);
    }
  }

  #readReply(depth: number): RedisReply | typeof incomplete {
    const type = this.#bytes[this.#at];
    switch (type === undefined ? '' : String.fromCharCode(type)) {
      case '':
        return incomplete;
      case ':':
        return this.#readInteger();
      case '+':
        return this.#readLine();
      case '-': {
        const line = this.#readLine();
        return line === incomplete ? incomplete : new RedisReplyError(line);
      }
      case '$':
        return this.#readString();
      case '*':
        return this.#readArray(depth);
      default:
        throw new Error(`the server does not speak the protocol of Redis: unexpected byte ${type}`);
    }
  }

  /** An integer, or the length of a string or array: `:123\r\n`. */
  #readInteger(): number | typeof incomplete {
    const bytes = this.#bytes;
    const start = this.#at + 1;
    const isNegative = bytes[start] === minus;
    const firstDigit = isNegative ? start + 1 : start;
    let at = firstDigit;
    let value = 0;
    for (; at < bytes.length; at += 1) {
      const digit = (bytes[at] ?? 0) - zero;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (at + 1 >= bytes.length && at - start <= 20) {
      return incomplete;
    }
    if (at === firstDigit || bytes[at] !== cr || bytes[at + 1] !== lf) {
      throw new Error('the server does not speak the protocol of Redis: invalid number');
    }
    this.#at = at + 2;
    if (at - firstDigit > maxExactDigits) {
      return Number(bytes.toString('latin1', start, at));
    }
    return isNegative ? -value : value;
  }

  #readLine(): string | typeof incomplete {
    const end = this.#bytes.indexOf('\r\n', this.#at);
    if (end < 0 && this.#bytes.length - this.#at <= maxLineBytes) {
      return incomplete;
    }
    if (end < 0 || end - this.#at > maxLineBytes) {
      throw new Error('a reply of the server is too long');
    }
    const line = this.#bytes.toString('utf8', this.#at + 1, end);
    this.#at = end + 2;
    return line;
  }

  #readString(): string | null | typeof incomplete {
    const length = this.#readInteger();
    if (length === incomplete) return incomplete;
    if (length === -1) return null;
    if (length < 0 || length > maxStringBytes) {
      throw new Error('a reply of the server is too long');
    }
    const end = this.#at + length;
    if (end + 2 > this.#bytes.length) return incomplete;
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end + 2;
    return text;
  }

  #readArray(depth: number): readonly RedisReply[] | null | typeof incomplete {
    const length = this.#readInteger();
    if (length === incomplete) return incomplete;
    if (length === -1) return null;
    if (length < 0 || length > maxElements || depth >= maxDepth) {
      throw new Error('a reply of the server is too long');
    }
    const elements: RedisReply[] = [];
    while (elements.length < length) {
      const isInteger = this.#bytes[this.#at] === colon;
      const element = isInteger ? this.#readInteger() : this.#readReply(depth + 1);
      if (element === incomplete) return incomplete;
      elements.push(element);
    }
    return elements;
  }
}
