/** A connection whose client makes the process hold bytes. */
export interface BufferHolder {
  readonly protocol: 'grpc' | 'http';
  /** IP address of the client. */
  readonly address: string;
  /** Ends what holds the most: an incomplete request, or the connection. */
  shed(): void;
}

interface ClientBuffersOptions {
  readonly maxBytes?: number;
  /** Called each time that a connection sheds. */
  readonly onShed?: (holder: BufferHolder) => void;
}

const mebibyte = 1024 * 1024;

export const defaultBufferBytes: number = 64 * mebibyte;

/** An eighth of it is enough for the largest message and what is held beside it. */
export const minBufferBytes: number = 16 * mebibyte;

/** Share of the budget that one connection may hold. */
const connectionShare = 1 / 8;

/** Share for all connections from one address; the rest is left to other clients. */
const addressShare = 1 / 2;

/** Shedding goes on below the bound, because it looks at all connections each time. */
const targetShare = 7 / 8;

/** The bytes that one connection holds. */
export class BufferAccount {
  readonly holder: BufferHolder;
  readonly #onChange: (difference: number) => void;
  readonly #onClose: () => void;
  #bytes = 0;

  constructor(holder: BufferHolder, onChange: (difference: number) => void, onClose: () => void) {
    this.holder = holder;
    this.#onChange = onChange;
    this.#onClose = onClose;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Sets what the connection holds now. May call `shed` of this and of other holders. */
  set(bytes: number): void {
    if (bytes === this.#bytes) return;
    const difference = bytes - this.#bytes;
    this.#bytes = bytes;
    this.#onChange(difference);
  }

  /** The connection has ended. */
  close(): void {
    this.set(0);
    this.#onClose();
  }
}

/** The connections from one address. */
interface Client {
  bytes: number;
  readonly accounts: Set<BufferAccount>;
}

/**
 * The budget of a process for bytes that clients make it hold: requests that have not arrived
 * completely, and replies that are not read.
 *
 * Beyond the budget, the address that holds the most sheds first, and of its connections the one
 * that holds the most. A client that holds little is not affected by others that hold much.
 */
export class ClientBuffers {
  readonly maxBytes: number;
  readonly #onShed: (holder: BufferHolder) => void;
  readonly #clients = new Map<string, Client>();
  #bytes = 0;

  constructor({ maxBytes = defaultBufferBytes, onShed = () => undefined }: ClientBuffersOptions = {}) {
    this.maxBytes = maxBytes;
    this.#onShed = onShed;
  }

  /** Bytes of all connections. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Opens the account of a connection. */
  open(holder: BufferHolder): BufferAccount {
    const { address } = holder;
    const client = this.#clients.get(address) ?? { bytes: 0, accounts: new Set() };
    this.#clients.set(address, client);
    const account: BufferAccount = new BufferAccount(
      holder,
      (difference) => {
        client.bytes += difference;
        this.#bytes += difference;
        if (difference > 0) this.#enforce(account, client);
      },
      () => {
        client.accounts.delete(account);
        if (client.accounts.size === 0 && this.#clients.get(address) === client)
          this.#clients.delete(address);
      },
    );
    client.accounts.add(account);
    return account;
  }

  #enforce(account: BufferAccount, client: Client): void {
    while (account.bytes > this.maxBytes * connectionShare && this.#shed(account));
    const addressBytes = this.maxBytes * addressShare;
    if (client.bytes > addressBytes) this.#shedClient(client, addressBytes * targetShare);
    if (this.#bytes > this.maxBytes) this.#shedAll(this.maxBytes * targetShare);
  }

  #shedAll(targetBytes: number): void {
    let before: number;
    do {
      before = this.#bytes;
      // Each gives up to half, so that one pass over thousands of clients is enough.
      for (const client of byBytes(this.#clients.values())) {
        this.#shedClient(client, Math.max(client.bytes / 2, client.bytes - (this.#bytes - targetBytes)));
        if (this.#bytes <= targetBytes) return;
      }
    } while (this.#bytes < before);
  }

  #shedClient(client: Client, targetBytes: number): void {
    let before: number;
    do {
      before = client.bytes;
      for (const account of byBytes(client.accounts)) {
        if (client.bytes <= targetBytes) return;
        this.#shed(account);
      }
    } while (client.bytes < before);
  }

  /** @returns whether it holds less now. */
  #shed(account: BufferAccount): boolean {
    const before = account.bytes;
    if (before === 0) return false;
    this.#onShed(account.holder);
    account.holder.shed();
    return account.bytes < before;
  }
}

/** Sorts by bytes, the most first. */
function byBytes<T extends { readonly bytes: number }>(all: Iterable<T>): T[] {
  return [...all].sort((a, b) => b.bytes - a.bytes);
}
