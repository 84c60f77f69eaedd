import type { Clock } from '../../src/core/clock.js'
import type { Slot } from '../../src/core/waiting/slot.js'
import type { WaitingRoom } from '../../src/core/waiting/waiting-room.js'
import { manualClock } from '../../src/testing/index.js'
import type { History, Operation, SlotPlan } from './random-history.js'

type Room = Pick<
  WaitingRoom,
  'size' | 'isFull' | 'nextFreeMs' | 'hasQueue' | 'enter' | 'turnAway' | 'storeReplied' | 'close'
>

/** Everything that can be observed of a room while the history is played, in order. */
export async function playHistory(
  { most, buckets, operations }: History,
  open: (most: number, clock: Clock) => Room,
): Promise<string[]> {
  const time = manualClock(1_000_000)
  let offset = 0
  const clock: Clock = { now: () => time.now() + offset, schedule: time.schedule }
  const room = open(most, clock)
  const log: string[] = []
  const note = (text: string): void => void log.push(`${text} @${time.now()}`)
  const aborts: AbortController[] = []
  let isUp = true

  const slotOf = (plan: SlotPlan): Slot => ({
    ...plan,
    async giveBack() {
      note(`give back ${plan.bucket} ${plan.permits} ${plan.grantedAt}${isUp ? '' : ', fails'}`)
      return isUp
    },
  })

  const perform = (operation: Operation): void => {
    const { kind } = operation
    if (kind === 'ENTER') {
      const request = aborts.push(new AbortController()) - 1
      room.enter({
        slots: operation.slots.map(slotOf),
        isHeld: operation.isHeld,
        signal: aborts[request]?.signal,
        leave(how) {
          note(`${request} ${how}`)
          observe()
          if (operation.onLeave) perform(operation.onLeave)
        },
      })
    } else if (kind === 'ABORT') aborts[operation.request]?.abort()
    else if (kind === 'TURN_AWAY') void room.turnAway(operation.slots.map(slotOf)).then(() => note('turned away'))
    else if (kind === 'PASS') time.advance(operation.ms)
    else if (kind === 'SET_CLOCK') offset += operation.byMs
    else if (kind === 'STORE') isUp = operation.isUp
    else if (kind === 'STORE_REPLIED') room.storeReplied()
    else if (kind === 'CLOSE') room.close()
  }

  const observe = (): void => {
    const queues = buckets.filter((bucket) => room.hasQueue([{ bucket } as Slot]))
    note(`size ${room.size}, full ${room.isFull}, free in ${room.nextFreeMs} ms, queues ${queues}`)
  }

  for (const operation of operations) {
    note(JSON.stringify(operation))
    perform(operation)
    if (operation.kind === 'TURN') await new Promise((resolve) => setImmediate(resolve))
    observe()
  }
  return log
}
