from verbena import execute

execute()
